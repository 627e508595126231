// System calls that would reveal gpr's helpers to the program. Helpers share its memory, and are
// its children or, once it has ended, its reaper's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "monitor/home/process.h"
#include "monitor/tracee/orphaned_helpers.h"
#include "monitor/tracee/stub_thread.h"

namespace gpr {

// Whether the call needs hide_helpers().
bool sees_helpers(uint64_t number, const uint64_t* args);
// Rewrites the call such that its result is as if there were no helpers. has_vfork_children: other
// processes of the program share the caller's memory.
void hide_helpers(const HomeProcess& caller, bool has_vfork_children, Call& call);

bool waits_for_children(uint64_t number);
// Makes the only call in `calls`, which waits_for_children(). If it reports an orphaned helper,
// reaps that and makes the program call again. The stub must be locked.
Task<void> wait_without(const OrphanedHelpers& orphans, StubThread& stub, std::vector<Call>& calls);

// The text of /proc/PID/task/TID/children without the helpers.
std::string children_without(const std::function<bool(pid_t)>& is_helper, const std::string& text);

// For a thread that is stopped before SIGCHLD is delivered: whether the signal reports only a
// helper, and no child whose SIGCHLD was merged with it.
bool tells_of_helper(const OrphanedHelpers& orphans, pid_t tid);

}  // namespace gpr
