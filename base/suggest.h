// "did you mean": finds the known word nearest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpr {

// Empty if no word is near enough.
std::string nearest_word(std::string_view typed, const std::vector<std::string_view>& known);

}  // namespace gpr
