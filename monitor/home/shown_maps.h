// /proc/PID/maps and smaps as they would be without gpr.
#pragma once

#include <string>

#include "monitor/home/process.h"

namespace gpr {

// path: the kernel's text; details: for smaps.
std::string shown_maps(HomeProcess& process, const std::string& path, Address stack_used,
                       bool details);

}  // namespace gpr
