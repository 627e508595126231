// wait4(2) and waitid(2) of processes that trace others: they tell of tracees, too, of which the
// kernel knows nothing. A call that can be answered is; any other is made, and interrupted when
// there is something to tell. Where the kernel says that there is nobody to wait for, but there are
// tracees, the thread waits in pause(2) instead.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "monitor/home/part.h"
#include "monitor/ptrace/wait_call.h"
#include "monitor/tracee/waits.h"

namespace gpr::home {

class TraceWaits {
public:
    explicit TraceWaits(Home& home) : home_(home) {}

    // The filter has stopped the thread before such a call. False: it makes the call as always.
    bool on_call(HomeThread& thread, user_regs_struct regs);
    // The same where code runs on several nodes, and the filter reports such calls.
    bool on_notification(HomeThread& thread, const Notification& n);
    // A thread that may be in such a call has stopped. True: it has been resumed.
    bool takes_stop(HomeThread& thread, WaitStatus status);
    // The same for a tracer at an acceptor. Nothing: the call is made as always.
    Task<std::optional<int64_t>> serve_forwarded(pid_t pid, pid_t tid, uint32_t number,
                                                 std::array<uint64_t, 6> args);
    // Whether such a call, which is made as always, was interrupted because it can be answered now.
    bool was_woken(pid_t tid) { return woken_.erase(tid) > 0; }
    // There is something to tell of the tracee.
    void wake_for(const ptrace::Tracee& tracee);
    void on_end(pid_t tid) {
        waiting_.erase(tid);
        woken_.erase(tid);
    }

private:
    struct Waiting {
        pid_t process = 0;
        ptrace::WaitCall call;
        bool until_exit = false;  // it stops when the kernel has made the call
        bool paused = false;      // it is in pause(2) instead
        bool to_pause = false;    // it is about to stop before the call, to make that one
        bool interrupted = false;
    };

    Task<void> serve_notified(pid_t pid, Notification n, ptrace::WaitCall call);
    void take(ptrace::Tracee& tracee);
    // What the call returns, if there is something to tell.
    std::optional<int64_t> tell(const HomeThread& thread, const ptrace::WaitCall& call);
    bool answer(HomeThread& thread, user_regs_struct& regs, const ptrace::WaitCall& call);
    [[nodiscard]] bool knows_all(pid_t process, const HomeThread& thread,
                                 const ptrace::WaitCall& call) const;
    [[nodiscard]] bool write_news(pid_t process, const ptrace::WaitCall& call,
                                  const ptrace::Tracee& tracee) const;
    Task<bool> put_away(std::shared_ptr<Fragment> fragment, ptrace::WaitCall call,
                        std::vector<std::byte> news, std::vector<std::byte> usage);
    Task<std::optional<int64_t>> make_without_waiting(pid_t pid, pid_t tid, ptrace::WaitCall call,
                                                      std::array<uint64_t, 6> args);
    Task<void> wake_away(pid_t tracee, pid_t pid, pid_t tid);
    void on_made(HomeThread& thread, Waiting& waiting, user_regs_struct regs);

    Home& home_;
    std::map<pid_t, Waiting> waiting_;  // by tid
    std::set<pid_t> woken_;             // threads at an acceptor
};

}  // namespace gpr::home
