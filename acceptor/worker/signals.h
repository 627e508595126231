// Signals at an acceptor: those that home passes on, and those that instructions raise here.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>

#include "acceptor/worker/part.h"
#include "monitor/tracee/waits.h"

namespace gpr {
struct HandledSignal;
}  // namespace gpr

namespace gpr::worker {

class Signals {
public:
    explicit Signals(Worker& worker) : worker_(worker) {}

    // What home is told of a signal: its handler has started, it ends the process, or it goes back
    // to home.
    enum class News { handled, fatal, goes_back };
    void tell_of_signal(pid_t pid, pid_t tid, const HandledSignal& signal, News news,
                        uint64_t mask = 0);
    void bounce(pid_t pid, pid_t tid, const HandledSignal& signal);
    static void deliver(RemoteThread& thread, const HandledSignal& signal);
    void tell_mask(RemoteThread& thread, uint64_t mask);
    void hand_over_answered(RemoteThread& thread);
    bool has_signal_to_handle(RemoteThread& thread);
    void look_for_discarded(pid_t pid);

    Task<void> signal_from_home(Frame frame);
    void on_signal_stop(RemoteProcess& process, RemoteThread& thread, int signal);
    // True if the stop is one of those that a thread makes on its way out of the vdso: VdsoExit.
    static bool leaves_vdso(RemoteThread& thread, WaitStatus status);
    bool handler_begun(RemoteProcess& process, RemoteThread& thread);
    // Whether a signal has ended the thread's latest call at home after that had begun.
    void note_interrupted(const RemoteThread& thread, bool interrupted);

    // Of a stopped thread: see gpr::restart_what_has_not_begun().
    void restart_what_has_not_begun(const RemoteProcess& process, const RemoteThread& thread);

private:
    Task<void> send_back_discarded(pid_t pid, pid_t tid, pid_t host_tid, uint32_t serial);
    void hand_over(RemoteThread& thread, const HandledSignal& signal);
    bool postpone_signal(RemoteThread& thread, int signal);
    void begin_handler(RemoteProcess& process, RemoteThread& thread, int signal,
                       const std::optional<HandledSignal>& sent);

    Worker& worker_;
    std::set<pid_t> interrupted_;  // by host tid
};

}  // namespace gpr::worker
