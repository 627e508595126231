// One process of the session as its debugger sees it.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "mm/page_protocol.h"
#include "monitor/debug/debuggee.h"
#include "monitor/home/debugged_births.h"
#include "monitor/home/debugged_memory.h"
#include "monitor/home/debugged_traps.h"
#include "monitor/home/debugging.h"
#include "monitor/home/given_signals.h"
#include "monitor/home/part.h"

namespace gpr {
struct ThreadContext;
}  // namespace gpr

namespace gpr::home {

class DebuggedProcess : public debug::Debuggee,
                        public std::enable_shared_from_this<DebuggedProcess> {
public:
    // started: the process is about to begin, and stops before its first instruction.
    DebuggedProcess(Home& home, pid_t pid, bool started, debug::Breakpoints there = {})
        : home_(home),
          pid_(pid),
          memory_(std::make_shared<DebuggedMemory>(home, pid, std::move(there))),
          started_(started),
          waits_(started),
          traps_(home) {}

    // Stops the process for a debugger that has come, which is not told of this stop.
    Task<void> begin(Debugging::Tell tell);
    [[nodiscard]] bool waits_for_debugger() const { return waits_; }

    // For a child of the process, which waits for the same debugger if that wants to hear of it.
    // Else it may begin with breakpoints but without a debugger. Null: there are none.
    [[nodiscard]] std::shared_ptr<DebuggedProcess> for_child(pid_t child, bool shares_memory);
    [[nodiscard]] bool has_debugger() const { return !is_child_; }
    // Of a child: whether it is in its first stop, or about to be, until its debugger wants it.
    enum class Birth : uint8_t { over, waits, wanted, died };
    [[nodiscard]] Birth birth() const;
    // A child that waits has been split, and its thread is in the stub. False if nobody wants it.
    [[nodiscard]] bool takes_newborn(HomeThread& thread, const ThreadContext& context);

    // See Debugging.
    [[nodiscard]] bool takes_signal(HomeThread& thread, int signal);
    // hits: of debug registers, as in hit_traps().
    [[nodiscard]] bool takes_remote_signal(HomeThread& thread, const siginfo_t& info, uint8_t hits);
    // here: the thread is in the stop of its call here; else at an acceptor.
    [[nodiscard]] bool takes_call(HomeThread& thread, const siginfo_t& info, bool here);
    // parent: null if a child that has shared its memory does so no more.
    void on_child(const HomeThread* parent, pid_t child, bool shares_memory);
    [[nodiscard]] GivenSignals& given() { return given_; }
    void on_thread_end(HomeThread& thread, const WaitStatus& status);
    void on_exec();
    void stop_at_exec(HomeThread& thread, ThreadContext context);
    void lose();

    [[nodiscard]] pid_t pid() const override { return pid_; }
    Task<bool> prepare() override;
    [[nodiscard]] bool was_started() const override { return started_; }
    [[nodiscard]] std::vector<pid_t> threads() const override;
    [[nodiscard]] std::string place_of(pid_t tid) const override;
    [[nodiscard]] std::optional<debug::Registers> registers(pid_t tid) const override;
    bool set_registers(pid_t tid, const debug::Registers& registers) override;
    [[nodiscard]] std::optional<siginfo_t> signal_info(pid_t tid) const override;
    debug::DebuggeeMemory& memory() override { return *memory_; }
    DebuggedTraps& traps() override { return traps_; }
    void go_on(const std::vector<debug::Continuation>& threads) override;
    void interrupt(int signal) override;
    void kill() override;
    void detach() override;
    Task<std::string> command(std::string words) override;

private:
    enum class State : uint8_t {
        running,
        stopping,
        stopped,
        over,
        newborn,  // Birth::waits
        sharing,  // has its parent's memory; it waits when it begins another program
    };

    [[nodiscard]] HomeProcess* process() const;
    [[nodiscard]] ThreadContext* context_of(pid_t tid) const;
    [[nodiscard]] bool concerns(const HomeThread& thread, const siginfo_t& info) const;
    void stop_for(const HomeThread& thread, const siginfo_t& info);
    void begin_stop(debug::StopReason why);
    static Task<void> stop(std::shared_ptr<DebuggedProcess> self);
    void find_cause();
    Task<bool> stop_at_handler(debug::Continuation how);
    static Task<void> leave(std::shared_ptr<DebuggedProcess> self);
    static Task<void> continue_threads(std::shared_ptr<DebuggedProcess> self,
                                       std::vector<debug::Continuation> threads);

    Home& home_;
    const pid_t pid_;
    std::shared_ptr<DebuggedMemory> memory_;
    Debugging::Tell tell_ = [](const debug::StopReason&) {};
    State state_ = State::running;
    debug::StopReason why_;             // of the current or next stop
    bool silent_ = false;               // the debugger is not told of the next stop
    bool leaves_ = false;               // the debugger has gone; the next stop is not for it
    const bool started_;                // under the debugger
    bool waits_;                        // for it, which has not come yet
    bool is_child_ = false;             // it may have its parent's breakpoints, and no debugger
    std::map<pid_t, NodeId> places_;    // where threads were when the stop began
    std::map<pid_t, siginfo_t> taken_;  // signals that stopped threads
    DebuggedTraps traps_;
    DebuggedBirths births_;
    bool inherits_ = false;            // its parent's breakpoints are in its memory
    std::map<pid_t, siginfo_t> late_;  // signals that came while the process was stopping
    GivenSignals given_;
    std::set<pid_t> steps_;           // threads that have the trap flag
    std::optional<Address> handler_;  // has a breakpoint because a step ends there
};

}  // namespace gpr::home
