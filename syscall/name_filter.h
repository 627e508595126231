// At home: a filter that stops the calls about one descriptor, which is a name of the acceptor's.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

#include "syscall/park.h"

namespace gpr {

// What comes with the stop (PTRACE_GETEVENTMSG), to tell it from one of a filter of the program's.
inline constexpr uint16_t name_filter_mark = 0x4770;

// Stacked upon home's filter, it stops (SECCOMP_RET_TRACE) what that one allows: calls with this
// descriptor as an argument, and those that may have it in memory or in a range. Not what the stub
// calls.
std::vector<sock_filter> name_filter(uint32_t number, uint32_t stub_word = stub_high_word);

// Its descriptors are in memory: sets to wait for.
bool has_fds_in_memory(uint32_t call);

}  // namespace gpr
