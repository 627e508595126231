// The caretaker: a small process that stays when a program with gpr's seccomp filter, which cannot
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
#include "monitor/home/left_filter.h"

namespace gpr {

inline constexpr const char* caretaker_command = "answer-filter";
inline constexpr int caretaker_listener = 3;  // its descriptor in the caretaker

// Identifies what a filter does; not a secret.
std::string name_of_filter(std::span<const sock_filter> filter);

// Starts a caretaker for each listener, none of which stays our child; none if no process has the
// filter any more.
Result<> leave_caretakers(const std::vector<LeftFilter>& left, const std::string& filter);
// The caretaker's main function, run by a hidden command of gpr.
int answer_filter();

// The caretaker that answers for a process, or for the nearest of its ancestors: a process has its
// own filter, or has inherited that one.
struct Caretaker {
    pid_t pid = 0;
    std::string filter;                  // see name_of_filter()
    std::vector<std::string> processes;  // that were known to have it
    unsigned generations = 0;            // see generations_to()
};
std::optional<Caretaker> caretaker_of(pid_t process);
// How many generations above the process the next of these is, 0: itself; nullopt: none is.
std::optional<unsigned> generations_to(const std::vector<std::string>& processes, pid_t process);
// Takes the listener from the caretaker and ends it. The caller must answer reported calls instead.
Result<Fd> relieve(const Caretaker& caretaker);

}  // namespace gpr
