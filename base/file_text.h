// What a file says. Streams of the standard library throw where a read fails, as those of /proc do
// when their process ends meanwhile.
#pragma once

#include <optional>
#include <string>

namespace gpr {

// Nothing: it cannot be opened, or not be read to its end.
std::optional<std::string> read_file(const std::string& path);

// Empty then.
inline std::string text_of(const std::string& path) { return read_file(path).value_or(""); }

}  // namespace gpr
