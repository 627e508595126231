// A process that ran before it joined the session: it is prepared as a program is after exec, and
// its threads continue from where they were stopped.
#pragma once

#include "monitor/home/part.h"
#include "monitor/tracee/infection.h"

namespace gpr::home {

class Adoption {
public:
    explicit Adoption(Home& home) : home_(home) {}

    // The process must be stopped and have gpr's filter.
    void adopt(Infection::Taken taken);

private:
    HomeProcess& add_process(Infection::Taken& taken);
    Task<void> take_over(HomeProcess& process, Infection::Taken taken);
    void go_on(HomeProcess& process, const StoppedThread& was);

    Home& home_;
};

}  // namespace gpr::home
