// System calls of traced threads, reported without a seccomp filter: the kernel stops a thread at
// the entry of each of its calls (PTRACE_SYSCALL), and the filter is asked here.
//
// This leaves no trace in a process, but each call stops its thread twice. While a call waits for
// its answer, its thread waits in pause(2), where signals find it as they would in a filter's
// report. Threads in their stubs run without such stops.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "monitor/tracee/notifier.h"
#include "monitor/tracee/waits.h"

namespace gpr {

class CallStops : public Notifier {
public:
    // Whether a call is reported that the filter allows.
    using Concerns = std::function<bool(const Notification&)>;

    // filter: as FilterNotifier's processes have it; what it reports goes to the handler.
    CallStops(Waits& waits, std::vector<sock_filter> filter, Handler handler, Concerns concerns);
    ~CallStops() override;

    // Whether the thread stops at its calls when it goes on.
    static void begin(pid_t tid);
    static void end(pid_t tid);

    // For a thread in the stop before or after a call. Resumes it.
    void on_call_stop(pid_t tid);

    bool reply_raw(uint64_t id, int64_t result) override;
    bool let_it_run(uint64_t id) override;
    [[nodiscard]] bool still_valid(uint64_t id) const override;
    [[nodiscard]] bool holds(pid_t tid) const { return callers_.contains(tid); }
    [[nodiscard]] size_t waiting() const override { return callers_.size(); }
    void on_thread_gone(pid_t tid) override;
    void poll() override { waits_.poll(); }

private:
    enum class State {
        stopped,      // at the entry of its call
        pausing,      // in pause(2) instead
        interrupted,  // another stop has ended the wait: the thread is about to call again
    };
    struct Caller {
        uint64_t id = 0;
        State state = State::stopped;
        user_regs_struct regs{};  // at the entry
    };

    void on_entry(pid_t tid, const Notification& call, uint32_t architecture);
    void report(pid_t tid, Notification call);
    void on_exit(pid_t tid);
    // Before anybody else looks at that stop.
    void on_other_stop(pid_t tid, const WaitStatus& status);
    // Ends the wait of a thread that pauses. False if something else has ended it.
    bool stop_pausing(pid_t tid, Caller& caller, user_regs_struct& regs, bool& others_wait);
    void answer(pid_t tid, user_regs_struct regs, uint64_t number, int64_t result);

    Waits& waits_;
    const std::vector<sock_filter> filter_;
    Handler handler_;
    Concerns concerns_;
    uint64_t next_id_ = 1;
    std::unordered_map<pid_t, Caller> callers_;
    std::unordered_map<uint64_t, pid_t> by_id_;
    // Calls that are made although the filter reports them, by where their instruction ends.
    std::unordered_map<pid_t, uint64_t> passing_;
    // Results for the kernel's own use, which are set when the call has been skipped: to be
    // restarted, by its number.
    std::unordered_map<pid_t, std::pair<uint64_t, int64_t>> at_exit_;
};

}  // namespace gpr
