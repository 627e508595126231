// What a detached program leaves behind where it had a filter, which no kernel takes off again: a
// small process that has the filter's listener and lets each call run that the filter reports. It
// ends with the last process that has the filter, or hands the listener on to the monitor of a new
// session.
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
inline constexpr int resident_listener = 3;  // its number there

// A name for what a filter does; not a secret.
std::string name_of_filter(std::span<const sock_filter> filter);

// In a new process, of which the caller is not the parent for long. Without effect where nobody has
// the filter any more. processes: that have it, as far as they are known.
Result<> leave_resident(const Fd& listener, const std::string& filter,
                        const std::vector<pid_t>& processes);
// What that process does: gpr's hidden command of that name.
int answer_filter();

// Who answers for a process, or for one that it descends from.
struct FilterResident {
    pid_t pid = 0;
    std::string filter;  // its name
};
std::optional<FilterResident> resident_of(pid_t process);
// Its listener; it is no more then. The caller answers from now on.
Result<Fd> relieve(const FilterResident& resident);

}  // namespace gpr
