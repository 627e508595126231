// Threads that sleep at home until somebody wakes them, such as the idle ones of a thread pool,
// while all others of their process are at an acceptor. They keep it from answering for files
// (delegations.h), so they sleep on there: whoever wakes them is there as well, most likely.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <unordered_map>

#include "mm/page_protocol.h"
#include "monitor/home/part.h"

namespace gpr::home {

class Sleepers {
public:
    explicit Sleepers(Home& home) : home_(home) {}

    // A file was not delegated to this acceptor, because not all threads are there.
    void on_kept_back(const HomeProcess& process, NodeId to);
    // The process has ended.
    void forget(pid_t pid) { kept_back_.erase(pid); }

private:
    [[nodiscard]] bool all_sleep(const HomeProcess& process, NodeId but_at) const;
    Task<void> follow(pid_t pid, pid_t tid, NodeId to);

    Home& home_;
    std::unordered_map<pid_t, uint32_t> kept_back_;  // files of each process
};

}  // namespace gpr::home
