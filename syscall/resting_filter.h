// At home: the filter of a process that rests, which no other filter of ours supervises.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

#include "syscall/park.h"

namespace gpr {

// What comes with the stop (PTRACE_GETEVENTMSG), to tell it from one of another filter.
inline constexpr uint16_t resting_filter_mark = 0x4772;

// It stops (SECCOMP_RET_TRACE) the calls of which a supervisor must know before they are made,
// because they make something that cannot be taken along to an acceptor later, or may be about
// what only an acceptor has; and refuses what no session allows. All others run natively.
// names: files may be an acceptor's, so that calls which look for one by its name are stopped. A
// call that does not follow symbolic links, as the walk through a directory makes them, is not.
std::vector<sock_filter> resting_filter(bool names, uint32_t stub_word = stub_high_word);

// For a process that has come home to rest: it stops, with the same mark, calls that read a clock
// of CPU time, because what was used at an acceptor has to be added. With `tracers`, for one that
// has no resting_filter(), also the calls of who traces others. All others run natively.
std::vector<sock_filter> homecoming_filter(bool tracers, uint32_t stub_word = stub_high_word);

// Such a call, made in whatever circumstances, is one that no process makes at rest.
bool ends_rest(uint32_t number, const uint64_t* args);

}  // namespace gpr
