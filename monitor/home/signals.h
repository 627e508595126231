// Signals arrive at home and are delivered where the thread is.
#pragma once

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
    void on_remote_signal(Frame frame);

private:
    void pass_on(HomeThread& thread, int signal);
    bool postpone_signal(HomeThread& thread, int signal);

    Home& home_;
};

}  // namespace gpr::home
