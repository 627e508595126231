// Faults of threads at home that are not what the kernel takes them for: below mappings that grow
// downwards, and beyond the end of a file.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <memory>

#include "monitor/home/part.h"

namespace gpr::home {

class Growth {
public:
    explicit Growth(Home& home) : home_(home) {}

    bool grows_for(HomeThread& thread);
    bool meets_end_of_file(HomeThread& thread);

private:
    bool grows_for_young(HomeThread& thread);
    // The thread is stopped by the signal, which it will not see, and goes on.
    Task<void> go_on_after(HomeThread& thread, int signal);
    Task<void> grow_down(HomeProcess& process, HomeThread& thread, siginfo_t info);
    Task<void> bus_error(std::shared_ptr<Fragment> fragment, pid_t tid, siginfo_t info);

    Home& home_;
};

}  // namespace gpr::home
