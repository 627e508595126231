// ptrace(2) as programs of the session call it: who may trace whom, what the tracer asks for, and
// how its tracees go on.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <array>
#include <cstdint>
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
    // A child that has not been split has called, and reports it. False: it is made as always.
    bool on_notification(const HomeThread& thread, const Notification& n);
    // A tracer at an acceptor has called, and gets the result.
    Task<int64_t> serve_forwarded(pid_t pid, pid_t tid, std::array<uint64_t, 6> args);
    // The same before clone(2) with CLONE_UNTRACED. True if the thread goes on, at home, to have a
    // child that we trace nevertheless, as a leak checker does whose child traces its threads.
    bool takes_clone(HomeThread& thread, user_regs_struct regs);
    // Whether a child of such a call has been born.
    bool is_untraced(pid_t parent);

private:
    Task<void> serve(pid_t pid, pid_t tid, user_regs_struct regs);
    Task<void> serve_notified(pid_t pid, Notification n);
    Task<int64_t> make(HomeThread& thread, pid_t target, ptrace::Request request);
    int64_t trace_me(HomeThread& thread);
    int64_t begin(HomeThread& tracer, pid_t target, ptrace::Request request);
    [[nodiscard]] bool may_be_tracer(const HomeProcess& process) const;
    [[nodiscard]] bool may_trace(const HomeThread& tracer, const HomeThread& target) const;
    int64_t interrupt(ptrace::Tracee& tracee, bool listens) const;
    int64_t go_on(ptrace::Tracee& tracee, ptrace::Request request);
    static int64_t set_options(ptrace::Tracee& tracee, uint64_t options);

    Home& home_;
    std::set<pid_t> with_untraced_;  // threads that are in such a call
};

}  // namespace gpr::home
