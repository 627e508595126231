// /proc/PID/maps and smaps as the program would see them without us.
#pragma once

#include <string>

#include "monitor/home/process.h"

namespace gpr {

// path: where the kernel's text is; details: it is smaps.
std::string shown_maps(HomeProcess& process, const std::string& path, Address stack_used,
                       bool details);

}  // namespace gpr
