// A process that ran before it joined the session: it is prepared as a program is after exec, and
// its threads continue from where they were stopped.
#pragma once

#include <functional>
#include <vector>

#include "monitor/home/part.h"
#include "monitor/tracee/infection.h"

namespace gpr::home {

class Adoption {
public:
    explicit Adoption(Home& home) : home_(home) {}

    // The processes must be stopped and have the filter; the first is the session's program.
    // is_attached is called when the threads of all continue.
    void adopt_all(std::vector<Infection::Taken> taken, const std::function<void()>& is_attached);

    // Records what /proc/PID/maps, which read_layout() reads, does not show.
    static void note_memory(HomeProcess& process, const MemoryState& memory);
    static void note_thread(HomeThread& thread, const StoppedThread& was);

private:
    void add_process(Infection::Taken& taken, bool is_root);
    Task<void> take_over(HomeProcess& process, Infection::Taken taken,
                         std::function<void()> is_attached);
    void go_on(HomeProcess& process, const StoppedThread& was);

    Home& home_;
};

}  // namespace gpr::home
