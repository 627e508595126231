// Forks of threads at home. While the kernel copies the memory here, all of it is here and no
// thread at the acceptor changes it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "monitor/home/part.h"

namespace gpr::home {

class ForksAtHome {
public:
    explicit ForksAtHome(Home& home) : home_(home) {}

    bool end_fork(HomeThread& thread);  // returns whether it was in one
    Task<void> fork_call(HomeProcess& process, HomeThread& thread, Notification n);

private:
    Task<bool> begin_fork(std::shared_ptr<Fragment> fragment, pid_t tid);
    Task<void> freeze(HomeProcess& process, pid_t tid);
    void end_failed_fork(pid_t tid);

    Home& home_;
    uint64_t forks_begun_ = 0;
};

}  // namespace gpr::home
