// PROCMAP_QUERY on the files that stand in for /proc/PID/maps. To the kernel these are only text,
// so home answers, for the memory as it is at that moment.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "base/address.h"
#include "monitor/home/part.h"
#include "syscall/marshal.h"

struct procmap_query;

namespace gpr::home {

class MappingQueries {
public:
    explicit MappingQueries(Home& home) : home_(home) {}

    // shown: the process whose memory the file describes; fd: a descriptor of process `holder`.
    void note_stand_in(HomeProcess& shown, pid_t holder, int fd);
    // Whether the call is such a query.
    [[nodiscard]] bool is_query(pid_t holder, uint64_t fd, uint64_t command) const;
    Task<int64_t> answer(HomeProcess& process, SyscallArguments args);
    Task<void> answer_here(HomeProcess& process, HomeThread& thread, Notification n);

private:
    struct StandIn {
        uint64_t inode = 0;
        pid_t shown = 0;
        // Expires at exec, so that the file no longer shows anything.
        std::weak_ptr<Fragment> memory;
    };
    [[nodiscard]] const StandIn* find(pid_t holder, int fd) const;
    Task<int64_t> answer_with(HomeProcess& process, HomeProcess& shown, procmap_query& query);
    Task<int64_t> give_name(HomeProcess& process, const std::string& name, procmap_query& query);

    Home& home_;
    std::deque<StandIn> stand_ins_;  // bounded: the oldest are dropped
};

}  // namespace gpr::home
