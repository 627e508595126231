// A seccomp filter of gpr that processes keep which continue without it.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/fd.h"

namespace gpr {

struct LeftFilter {
    Fd listener;
    std::vector<pid_t> processes;  // which have the filter, besides their descendants
};

}  // namespace gpr
