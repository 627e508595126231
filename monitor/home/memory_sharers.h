// Processes of the session that share memory which may be written. They go to an acceptor together,
// and come home together: memory that is used on both nodes is used at home, which is slow
// (decision 29).
// docs/decisions/0090-who-shares-memory-goes-together.md
#pragma once

#include <sys/types.h>

#include <vector>

#include "monitor/home/part.h"

namespace gpr::home {

// The process, first, and those that run at home, too, and share memory with it, directly or by way
// of each other.
[[nodiscard]] std::vector<pid_t> sharers_at_home(const Home& home, pid_t pid);
// These processes, and those that are split, too, and share memory with one of them.
[[nodiscard]] std::vector<pid_t> with_split_sharers(const Home& home,
                                                    const std::vector<pid_t>& pids);
// Whether mmap or shmat maps memory that a process which is split shares.
[[nodiscard]] bool maps_memory_of_split(const Home& home, const HomeProcess& process,
                                        const Notification& n);

}  // namespace gpr::home
