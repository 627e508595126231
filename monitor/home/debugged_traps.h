// What stops threads of a process for its debugger beside signals and breakpoints in memory:
// addresses that the processor watches, system calls, children.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <map>
#include <optional>
#include <set>

#include "monitor/debug/debuggee.h"
#include "monitor/home/thread_traps.h"

namespace gpr {
struct ThreadContext;
}  // namespace gpr

namespace gpr::home {

class DebuggedTraps : public debug::DebuggeeTraps {
public:
    explicit DebuggedTraps(Home& home) : threads_(home) {}

    bool set_hardware(const debug::HardwareBreakpoint& one, bool there) override;
    void catch_calls(debug::CaughtCalls calls) override;
    void catch_forks(bool forks, bool vforks) override;

    [[nodiscard]] ThreadTraps& threads() { return threads_; }
    [[nodiscard]] const ThreadTraps& threads() const { return threads_; }
    [[nodiscard]] bool catches_child(bool shares_memory) const {
        return shares_memory ? vforks_ : forks_;
    }
    // A thread has stopped at a call: whether its debugger is to hear of it.
    [[nodiscard]] bool catches(pid_t tid, const siginfo_t& info);
    // A thread is in the stop of a signal: which debug registers have raised it, as in hit_traps().
    void note_hits(pid_t tid, const siginfo_t& info, uint8_t hits);

    // The thread has stopped for the debugger by this signal. Says why, and gives the thread the
    // registers that ptrace would show.
    void find_cause(ThreadContext& context, siginfo_t& info, debug::StopReason& why);
    // The debugger is told of another thread first. Prepares this one to stop again later; false if
    // it does not.
    [[nodiscard]] bool comes_again(pid_t tid, ThreadContext& context, const siginfo_t& info);
    // Before a thread continues. Its call is made, unless the debugger has cleared orig_rax.
    void prepare(pid_t tid, ThreadContext& context, bool tells_return);

    // Nothing stops threads any more.
    void clear();
    void on_thread_end(pid_t tid);
    void on_exec();

private:
    struct Before {
        uint64_t number = 0;
        uint64_t rip = 0;
    };

    ThreadTraps threads_;
    debug::CaughtCalls calls_;
    bool forks_ = false, vforks_ = false;
    std::map<pid_t, uint8_t> hits_;
    std::map<pid_t, Before> before_;       // threads that stand before their calls
    std::map<pid_t, uint64_t> goes_on_;    // the address of its call, which is let pass
    std::map<pid_t, uint64_t> returning_;  // the numbers of calls from which threads return
    std::set<pid_t> shows_call_;  // threads whose orig_rax is that of a call that has been made
};

}  // namespace gpr::home
