// A filter at home that stops calls about one descriptor, which is a name of an acceptor's file.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

#include "syscall/park.h"

namespace gpr {

// PTRACE_GETEVENTMSG returns it, to distinguish the stop from one by a filter of the program's.
inline constexpr uint16_t name_filter_mark = 0x4770;

// Installed on top of home's filter. It stops (SECCOMP_RET_TRACE) calls that the other allows:
// those with this descriptor as an argument, and those that may have it in memory or in a range.
// Calls of the stub are not stopped.
std::vector<sock_filter> name_filter(uint32_t number, uint32_t stub_word = stub_high_word);

// Whether the call has descriptors in memory: sets to wait for.
bool has_fds_in_memory(uint32_t call);

}  // namespace gpr
