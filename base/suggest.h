// "did you mean": the known word nearest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpr {

// Empty where nothing is near enough to be worth a guess.
std::string nearest_word(std::string_view typed, const std::vector<std::string_view>& known);

}  // namespace gpr
