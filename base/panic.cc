#include <cstdio>
#include <cstdlib>

#include "base/result.h"

namespace gpr {

void panic(const char* file, int line, const std::string& message) {
    std::fprintf(stderr, "gpr: internal error at %s:%d: %s\n", file, line, message.c_str());
    std::abort();
}

}  // namespace gpr
