// Signals arrive at home and are delivered on the node where the thread is.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <unordered_map>

#include "mm/page_protocol.h"
#include "monitor/home/part.h"

namespace gpr::home {

class Signals {
public:
    explicit Signals(Home& home) : home_(home) {}

    static void stop_after_all(const HomeThread& thread);
    void on_signal(HomeThread& thread, int signal);
    void go_on_waiting(HomeThread& thread, int signal = 0);
    void stop_remotely(HomeProcess& process, bool stopped);
    Task<void> die_of(HomeThread& thread, int signal);
    // Whether the signal would end the process, with a core file.
    [[nodiscard]] static bool would_dump_core(const HomeThread& thread, int signal);
    void on_remote_signal(Frame frame, NodeId from);
    // Under chaos, where all calls are reported: a thread at home has reported one.
    void note_reported(pid_t tid, uint32_t number) { reported_[tid] = number; }

private:
    void pass_on(HomeThread& thread, int signal);
    bool drops(HomeThread& thread, int signal);
    bool dumps_core(HomeThread& thread, int signal);
    bool postpone_signal(HomeThread& thread, int signal);
    void restart_what_has_not_begun(const HomeThread& thread);

    Home& home_;
    std::unordered_map<pid_t, uint32_t> reported_;  // the last one, by tid
};

}  // namespace gpr::home
