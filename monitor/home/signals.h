// Signals arrive at home and are delivered on the node where the thread is.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <unordered_map>

#include "mm/page_protocol.h"
#include "monitor/home/part.h"
#include "monitor/home/silent_interruptions.h"
#include "monitor/tracee/notifier.h"
#include "monitor/tracee/restarted_calls.h"
#include "syscall/table.h"

namespace gpr::home {

class Signals {
public:
    explicit Signals(Home& home) : home_(home), silent_interruptions_(home) {}

    [[nodiscard]] SilentInterruptions& silent_interruptions() { return silent_interruptions_; }

    static void stop_after_all(const HomeThread& thread);
    void on_signal(HomeThread& thread, int signal);
    // How many threads have stopped for this signal so far.
    [[nodiscard]] uint64_t met(int signal) const { return met_.at(static_cast<size_t>(signal)); }
    void on_group_stop(HomeThread& thread);
    // A watch has stopped the thread at the end of a call.
    void on_call_end(HomeThread& thread);
    void go_on_waiting(HomeThread& thread, int signal = 0);
    void stop_remotely(HomeProcess& process, bool stopped);
    Task<void> die_of(HomeThread& thread, int signal);
    // Whether the signal would end the process, with a core file.
    [[nodiscard]] static bool would_dump_core(const HomeThread& thread, int signal);
    void on_remote_signal(Frame frame, NodeId from);
    // The filter has reported a call of a thread.
    void note_reported(HomeThread& thread, const Notification& n);
    void on_thread_end(pid_t tid) { reported_.erase(tid); }
    [[nodiscard]] RestartedCalls& restarted() { return restarted_; }

private:
    void pass_on(HomeThread& thread, int signal);
    bool drops(HomeThread& thread, int signal);
    bool dumps_core(HomeThread& thread, int signal);
    bool postpone_signal(HomeThread& thread, int signal);
    void restart_what_has_not_begun(const HomeThread& thread);
    [[nodiscard]] bool is_to_be_reported(const HomeProcess& process, const Row& row,
                                         const std::array<uint64_t, 6>& args) const;

    struct Reported {
        uint32_t number;
        std::array<uint64_t, 6> args;
        bool operator==(const Reported&) const = default;
    };

    Home& home_;
    SilentInterruptions silent_interruptions_;
    std::unordered_map<pid_t, Reported> reported_;  // the last one, by tid
    RestartedCalls restarted_;
    std::array<uint64_t, 65> met_{};
};

}  // namespace gpr::home
