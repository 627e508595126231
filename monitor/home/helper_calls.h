// System calls that would tell the program of gpr's helpers, which share its memory and are its
// children, or those of its reaper once it has ended.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "monitor/home/process.h"
#include "monitor/tracee/orphaned_helpers.h"
#include "monitor/tracee/stub_thread.h"

namespace gpr {

// Whether such a call needs hide_helpers().
bool sees_helpers(uint64_t number, const uint64_t* args);
// Makes the call one that answers what this one would if there were none. has_guests: other
// processes of the program share the caller's memory.
void hide_helpers(const HomeProcess& caller, bool has_guests, Call& call);

bool waits_for_children(uint64_t number);
// Makes the one call, which does. If it tells of an orphaned helper, the program is to call again.
// The stub is locked.
Task<void> wait_without(const OrphanedHelpers& orphans, StubThread& stub, std::vector<Call>& calls);

// Of the text of /proc/PID/task/TID/children what is not about them.
std::string children_without(const std::function<bool(pid_t)>& is_helper, const std::string& text);

// The thread is in the stop before a SIGCHLD, which tells of nothing else: not of a child whose own
// was one too many while this one waited.
bool tells_of_helper(const OrphanedHelpers& orphans, pid_t tid);

}  // namespace gpr
