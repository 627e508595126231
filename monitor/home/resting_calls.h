// The calls that a process at rest cannot make and go on resting (decision 51).
#pragma once

#include <sys/user.h>

#include <cstdint>
#include <string>

#include "monitor/home/part.h"

namespace gpr::home {

// The call that a thread with these registers is in, or has just ended.
[[nodiscard]] Notification call_of(const HomeThread& thread, const user_regs_struct& regs);
[[nodiscard]] std::string name_of_call(uint32_t number);

// Whether the process, which is about to make the call, has to be split before.
[[nodiscard]] bool cannot_rest_with(Home& home, const HomeProcess& process, const Notification& n);

}  // namespace gpr::home
