// ptrace(2) as programs of the session call it: who may trace whom, what the tracer asks for, and
// how its tracees go on.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <array>
#include <cstdint>
#include <optional>
#include <set>

#include "monitor/home/part.h"
#include "monitor/ptrace/data_requests_raw.h"
#include "monitor/ptrace/tracee.h"

namespace gpr::home {

class TraceCalls {
public:
    explicit TraceCalls(Home& home) : home_(home) {}

    // The filter has stopped the thread before the call.
    void on_call(HomeThread& thread, const user_regs_struct& regs);
    // A thread at home has called, and reports it. False: it is made as always.
    bool on_notification(const HomeThread& thread, const Notification& n);
    // A tracer at an acceptor has called, and gets the result.
    // Nothing: the call is made as always.
    Task<std::optional<int64_t>> serve_forwarded(pid_t pid, pid_t tid,
                                                 std::array<uint64_t, 6> args);
    // The same before clone(2) with CLONE_UNTRACED. True if the thread goes on, at home, to have a
    // child that we trace nevertheless, as a leak checker does whose child traces its threads.
    bool takes_clone(HomeThread& thread, user_regs_struct regs);
    // Whether a child of such a call has been born.
    bool is_untraced(pid_t parent);
    // The same call, from an acceptor: the process comes home, and makes it there. False if it
    // cannot come home, so that the call is made as always.
    bool brings_home_for_clone(HomeThread& thread, uint64_t flags);

private:
    Task<void> serve(pid_t pid, pid_t tid, user_regs_struct regs);
    Task<void> serve_notified(pid_t pid, Notification n);
    Task<int64_t> make(HomeThread& thread, pid_t target, ptrace::Request request);
    Task<int64_t> act(HomeThread& thread, pid_t target, ptrace::Request request);
    // What must be so before a tracee is begun. Returns as prepare().
    Task<int64_t> get_ready(pid_t pid, pid_t tid, pid_t target, ptrace::Request request);
    [[nodiscard]] int64_t trace_me(pid_t pid, pid_t tid) const;
    // PTRACE_ATTACH and PTRACE_SEIZE.
    [[nodiscard]] int64_t begin(pid_t pid, pid_t tid, pid_t target, ptrace::Request request) const;
    [[nodiscard]] Result<HomeThread*> may_begin(const HomeThread& tracer, pid_t target) const;
    [[nodiscard]] bool may_be_tracer(const HomeProcess& process) const;
    Task<int64_t> prepare(pid_t caller, pid_t tracer, pid_t tracee);
    Task<bool> make_ready(pid_t pid, bool as_tracer);
    void make_caller_ready(pid_t pid, bool as_tracer);
    Task<int64_t> leave_session(pid_t caller, pid_t other);
    [[nodiscard]] bool may_trace(const HomeThread& tracer, const HomeThread& target) const;
    Task<void> call_without_untraced(pid_t pid, Notification n);
    [[nodiscard]] bool is_of_others(uint64_t kind, pid_t target) const;
    int64_t interrupt(ptrace::Tracee& tracee, bool listens) const;
    int64_t go_on(ptrace::Tracee& tracee, ptrace::Request request);
    static int64_t set_options(ptrace::Tracee& tracee, uint64_t options);

    Home& home_;
    std::set<pid_t> with_untraced_;  // threads that are in such a call
    std::set<pid_t> coming_home_;    // processes, so that they can trace or be traced
};

}  // namespace gpr::home
