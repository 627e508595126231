// Debuggers of split processes. A debugged process stops as a whole, by coming home: then its
// threads stand in their stubs here with the registers that they continue with, and its memory is
// fetched as the debugger reads it.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>

#include "base/result.h"
#include "monitor/debug/debuggee.h"
#include "monitor/home/part.h"
#include "monitor/tracee/debug_traps.h"

namespace gpr {
struct ThreadContext;
}  // namespace gpr

namespace gpr::home {

class DebuggedProcess;
class Tracing;

class Debugging {
public:
    explicit Debugging(Home& home);
    ~Debugging();
    Debugging(const Debugging&) = delete;
    Debugging& operator=(const Debugging&) = delete;

    // The process, which is about to begin, waits for a debugger before its first instruction.
    void await_debugger(HomeProcess& process);

    // The same from within: programs of the session that trace others.
    [[nodiscard]] Tracing& tracing() { return *tracing_; }

    // Tells of each stop, and of the end; after that the process must not be used any more.
    using Tell = std::function<void(const debug::StopReason&)>;

    // Stops the process for a debugger, which is not told of this stop.
    Task<Result<std::shared_ptr<DebuggedProcess>>> begin(pid_t pid, Tell tell);

    // A thread is in the stop before it gets a signal. True if a debugger takes the signal, and the
    // stop with it.
    [[nodiscard]] bool takes_signal(HomeThread& thread, int signal);
    // The same for a signal that arose at an acceptor, where the thread has stopped.
    // hits: of debug registers, as in hit_traps().
    [[nodiscard]] bool takes_remote_signal(HomeThread& thread, const siginfo_t& info, uint8_t hits);
    // A thread here, or at an acceptor, has stopped at a system call because its debugger wanted
    // so. False if the signal is another one.
    [[nodiscard]] bool takes_call(HomeThread& thread);
    [[nodiscard]] bool takes_remote_call(HomeThread& thread, const siginfo_t& info);
    // To be asked first about each stop here: it may be that of a thread that makes such a call.
    [[nodiscard]] bool takes_stop(pid_t tid, const WaitStatus& status);
    // The thread is in a ptrace stop here. Gives it what its debugger watches.
    void equip(HomeThread& thread);
    // Before its threads may go on: tells acceptors what the debugger watches.
    static void tell_of_traps(const HomeProcess& process);
    // The thread is about to get a signal that the debugger gives it: restores its siginfo.
    void restore_signal(HomeThread& thread, int signal);
    // A signal that was let through to an acceptor has not been handled there, and comes once more.
    void came_back(HomeThread& thread, const siginfo_t& info);
    void on_thread_end(HomeThread& thread, WaitStatus status);
    // A child has been born, with the breakpoints of its parent in its memory. If no debugger wants
    // to hear of it, they are removed when it hits one of them.
    void inherit(const HomeThread& parent, HomeProcess& child, bool shares);
    // The same, for a debugger that wants to know.
    void on_child(const HomeThread& parent, pid_t child, bool shares);
    // Whether it is a child that waits for its parent's debugger.
    [[nodiscard]] static bool waits_at_birth(const HomeProcess& process);
    // A child that waits for its parent's debugger is in its first stop. True if it is to be split
    // for the debugger; nullopt: it has ended.
    Task<std::optional<bool>> wanted_at_birth(HomeThread& thread);
    // Such a child has been split, and its thread is in the stub. True if it stays there.
    [[nodiscard]] bool takes_newborn(HomeThread& thread, const ThreadContext& context);
    // The process has called exec. True if it has a debugger, for which it is to stop before the
    // new program begins.
    [[nodiscard]] bool follows_exec(HomeProcess& process);
    // Before the new program's first instruction, at which `context` is. The thread is in its stub.
    void stop_at_exec(HomeThread& thread, ThreadContext context);
    // The process goes on in a way in which it cannot be debugged: its debugger is told that it has
    // ended.
    void lose(HomeProcess& process);

    // A thread at an acceptor that waits before it gets this signal may handle it, or make its
    // call.
    void let_handle(const HomeThread& thread, const siginfo_t& info);

private:
    Task<Result<void>> make_whole(pid_t pid);

    Home& home_;
    const std::unique_ptr<Tracing> tracing_;
    PassedCalls passed_calls_;
};

}  // namespace gpr::home
