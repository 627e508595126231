#include <fmt/format.h>

#include <cstdio>

#include "tools/commands.h"

namespace gpr {

void complain(std::string_view text) { fmt::print(stderr, "gpr: {}\n", text); }

}  // namespace gpr
