// One process of the session as its debugger sees it.
#pragma once

#include <sys/stat.h>

#include <map>
#include <memory>
#include <set>

#include "mm/page_protocol.h"
#include "monitor/debug/breakpoints.h"
#include "monitor/debug/debuggee.h"
#include "monitor/home/debugging.h"
#include "monitor/home/part.h"

namespace gpr {
struct ThreadContext;
}  // namespace gpr

namespace gpr::home {

class DebuggedProcess : public debug::Debuggee,
                        public std::enable_shared_from_this<DebuggedProcess> {
public:
    DebuggedProcess(Home& home, pid_t pid, Debugging::Tell tell)
        : home_(home), pid_(pid), tell_(std::move(tell)) {}

    // Stops it; its debugger is not told of this stop.
    Task<void> begin();

    // See Debugging.
    [[nodiscard]] bool takes_signal(HomeThread& thread, int signal);
    [[nodiscard]] bool takes_remote_signal(HomeThread& thread, const siginfo_t& info);
    void restore_signal(HomeThread& thread, int signal);
    void on_thread_end(HomeThread& thread, const WaitStatus& status);
    void lose();

    [[nodiscard]] pid_t pid() const override { return pid_; }
    [[nodiscard]] std::vector<pid_t> threads() const override;
    [[nodiscard]] std::string place_of(pid_t tid) const override;
    [[nodiscard]] std::optional<debug::Registers> registers(pid_t tid) const override;
    bool set_registers(pid_t tid, const debug::Registers& registers) override;
    [[nodiscard]] std::optional<siginfo_t> signal_info(pid_t tid) const override;
    Task<size_t> read(Address from, std::span<std::byte> bytes) override;
    Task<bool> write(Address to, std::span<const std::byte> bytes) override;
    Task<bool> set_breakpoint(Address at, bool there) override;
    [[nodiscard]] std::string auxv() const override;
    [[nodiscard]] std::string maps() const override;
    [[nodiscard]] std::string executable() const override;
    Result<Fd> open_mapped_file(const std::string& path) override;
    void go_on(const std::vector<debug::Continuation>& threads) override;
    void interrupt() override;
    void kill() override;
    void detach() override;
    Task<std::string> command(std::string words) override;

private:
    enum class State : uint8_t { running, stopping, stopped, over };

    [[nodiscard]] HomeProcess* process() const;
    [[nodiscard]] ThreadContext* context_of(pid_t tid) const;
    [[nodiscard]] bool is_mapped(const struct stat& about, const Fd& file) const;
    void begin_stop(debug::StopReason why);
    static Task<void> stop(std::shared_ptr<DebuggedProcess> self);
    void give(const debug::Continuation& how);
    void let_handle(const HomeThread& thread, const siginfo_t& info);
    Task<bool> stop_at_handler(debug::Continuation how);
    static Task<void> leave(std::shared_ptr<DebuggedProcess> self);
    bool step_back_to_breakpoint(pid_t tid, const siginfo_t& info);
    Task<bool> write_raw(Address to, std::span<const std::byte> bytes);
    void undo_late_signal(pid_t tid, const siginfo_t& info);
    static Task<void> continue_threads(std::shared_ptr<DebuggedProcess> self,
                                       std::vector<debug::Continuation> threads);
    [[nodiscard]] siginfo_t info_to_give(const debug::Continuation& how) const;
    bool dies_of(const debug::Continuation& how);
    void tell(const debug::StopReason& why);

    Home& home_;
    const pid_t pid_;
    Debugging::Tell tell_;
    State state_ = State::running;
    debug::StopReason why_;             // the current or next stop
    bool silent_ = false;               // the debugger is not told of the next stop
    bool leaves_ = false;               // the debugger has gone; the next stop is not for it
    std::map<pid_t, NodeId> places_;    // where threads were when the stop began
    std::map<pid_t, siginfo_t> taken_;  // signals that stopped threads
    std::map<pid_t, siginfo_t> late_;   // those that came while the process was stopping already
    std::map<pid_t, siginfo_t> given_;  // by the debugger, not delivered yet
    std::set<pid_t> again_;             // of those the debugger is told again
    std::map<pid_t, int> repeated_;  // given to threads that raise them once more, at an acceptor
    std::set<pid_t> steps_;          // threads that have the trap flag
    debug::Breakpoints breakpoints_;
    std::optional<Address> handler_;  // where one of them is only because a step is to end there
};

}  // namespace gpr::home
