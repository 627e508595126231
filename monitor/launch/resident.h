// The resident: a small process that stays when a program with gpr's seccomp filter, which cannot
// be removed, has been detached. It holds the filter's listener and lets every reported call
// proceed. It ends with the last process that has the filter, or hands the listener to the monitor
// of a new session.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace gpr {

inline constexpr const char* resident_command = "answer-filter";
inline constexpr int resident_listener = 3;  // its descriptor in the resident

// Identifies what a filter does; not a secret.
std::string name_of_filter(std::span<const sock_filter> filter);

// Starts a resident, which does not stay our child. Does nothing if no process has the filter any
// more. processes: those known to have the filter.
Result<> leave_resident(const Fd& listener, const std::string& filter,
                        const std::vector<pid_t>& processes);
// The resident's main function, run by a hidden command of gpr.
int answer_filter();

// The resident that answers for a process, or for one of its ancestors.
struct FilterResident {
    pid_t pid = 0;
    std::string filter;  // see name_of_filter()
};
std::optional<FilterResident> resident_of(pid_t process);
// Takes the listener from the resident and ends it. The caller must answer reported calls instead.
Result<Fd> relieve(const FilterResident& resident);

}  // namespace gpr
