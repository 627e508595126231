// All ptrace waits of a session go through here: one SIGCHLD signalfd, one waitpid loop.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <unordered_map>

#include "base/fd.h"
#include "base/result.h"
#include "transport/loop.h"

namespace gpr {

// A decoded wait status.
struct WaitStatus {
    enum class Kind {
        exited,       // value: exit code
        killed,       // value: signal
        signal_stop,  // signal-delivery-stop; value: signal
        call_end,     // likewise, but SIGSTOP by a CallWatch, which is not to be delivered
        event,        // value: PTRACE_EVENT_*
        group_stop,   // PTRACE_EVENT_STOP with a stopping signal; value: that signal
        trap_stop,    // PTRACE_EVENT_STOP by PTRACE_INTERRUPT or at birth
        syscall_stop,
    };
    Kind kind;
    int value = 0;

    static WaitStatus decode(int raw);         // takes a call_end for a signal_stop
    static WaitStatus of(pid_t tid, int raw);  // of our tracee
    [[nodiscard]] bool ended() const { return kind == Kind::exited || kind == Kind::killed; }
};

class Waits {
public:
    using Handler = std::function<void(WaitStatus)>;

    // Blocks SIGCHLD in this thread.
    static Result<std::unique_ptr<Waits>> create(Loop& loop);

    // A status that arrived before its handler (such as a new child's first stop) is delivered at
    // once.
    void set_handler(pid_t tid, Handler handler);
    void remove_handler(pid_t tid);

    // Called before the handler, with each status of each thread.
    void look_first(std::function<void(pid_t tid, const WaitStatus& status)> look) {
        look_ = std::move(look);
    }
    // Hands the thread's handler a status, as waitpid(2) has stored it, in the loop's next round.
    void deliver_later(pid_t tid, int raw);

    // Handles the statuses that are pending, without waiting.
    void poll();

    // Delivers a pending stop of this thread now. A thread on our own CPU has often stopped before
    // PTRACE_INTERRUPT returns, so this saves an iteration of the loop. Deaths and stops of other
    // threads are left to the loop.
    void look_for_stop(pid_t tid);

private:
    explicit Waits(Loop& loop) : loop_(loop) {}
    void report_vanished();
    void deliver(pid_t tid, Handler& handler, WaitStatus status);

    Loop& loop_;
    std::function<void(pid_t tid, const WaitStatus& status)> look_;
    Fd signal_fd_;
    Watch watch_;
    std::unordered_map<pid_t, std::shared_ptr<Handler>> handlers_;
    std::unordered_map<pid_t, int> early_;
};

}  // namespace gpr
