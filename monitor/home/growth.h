// Faults of threads at home that are no errors of the program, although the kernel raises a signal:
// below mappings that grow downwards, and at pages of files.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <memory>

#include "base/address.h"
#include "monitor/home/part.h"

namespace gpr::home {

class Growth {
public:
    explicit Growth(Home& home) : home_(home) {}

    bool grows_for(HomeThread& thread);
    bool meets_end_of_file(HomeThread& thread);
    // In a process that was attached the kernel itself extends what had been mapped to grow. A
    // thread has touched such memory, of which we do not know. False if it is something else.
    bool meets_growth(Fragment& fragment, Address at);

private:
    bool grows_for_young(HomeThread& thread);
    // Resumes a thread that is stopped by the signal, without delivering it.
    Task<void> go_on_after(HomeThread& thread, int signal);
    Task<void> grow_down(HomeProcess& process, HomeThread& thread, siginfo_t info);
    Task<void> note_growth(std::shared_ptr<Fragment> fragment, Address at);
    Task<void> bus_error(std::shared_ptr<Fragment> fragment, pid_t tid, siginfo_t info);

    Home& home_;
};

}  // namespace gpr::home
