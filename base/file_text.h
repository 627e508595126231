// Reading whole files. The standard library's streams throw if a read fails, as it does for files
// of /proc whose process has ended.
#pragma once

#include <optional>
#include <string>

namespace gpr {

// nullopt: the file cannot be opened, or cannot be read to its end.
std::optional<std::string> read_file(const std::string& path);

// The same; empty instead of nullopt.
inline std::string text_of(const std::string& path) { return read_file(path).value_or(""); }

}  // namespace gpr
