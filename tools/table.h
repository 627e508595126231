// Text in columns.
#pragma once

#include <string>
#include <vector>

namespace gpr {

// Columns as wide as their widest cell, two spaces apart, without blanks at line ends; every row
// ends with a newline. The first row is the heading. Without control characters: cells may be of
// others' choice.
std::string format_table(std::vector<std::vector<std::string>> rows);

}  // namespace gpr
