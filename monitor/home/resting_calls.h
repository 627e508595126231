// The calls that a process at rest cannot make and go on resting (decision 51).
#pragma once

#include "monitor/home/part.h"

namespace gpr::home {

// Whether the process, which is about to make the call, has to be split before.
[[nodiscard]] bool cannot_rest_with(Home& home, const HomeProcess& process, const Notification& n);

}  // namespace gpr::home
