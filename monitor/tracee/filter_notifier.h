// The system calls that seccomp filters report to the supervisor, by one listener for each filter.
#pragma once

#include <linux/seccomp.h>

#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "monitor/tracee/notifier.h"
#include "transport/loop.h"

namespace gpr {

class FilterNotifier : public Notifier {
public:
    FilterNotifier(Loop& loop, Handler handler) : loop_(loop), handler_(std::move(handler)) {}

    // Reports the calls of all processes that have the listener's filter.
    void listen(std::shared_ptr<Fd> listener);

    bool reply_raw(uint64_t id, int64_t result) override;
    bool let_it_run(uint64_t id) override;
    // Puts a copy of our fd into the caller's table, close-on-exec, as `number`, or as any free
    // number if that is 0. The new number is the result of the call. False as for reply().
    bool reply_with_fd(uint64_t id, int fd, int number = 0);
    // The same without a result for the call, replacing what `number` refers to. Returns the
    // kernel's result.
    [[nodiscard]] int64_t put_fd(uint64_t id, int fd, int number, bool closes_on_exec) const;
    [[nodiscard]] bool still_valid(uint64_t id) const override;
    [[nodiscard]] size_t waiting() const override { return waiting_.size(); }
    void on_thread_gone(pid_t tid) override;
    void poll() override;

private:
    struct Listener {
        std::shared_ptr<Fd> fd;
        Watch watch;
    };
    struct Caller {
        pid_t tid = 0;
        int listener = -1;
    };
    void poll(int listener);
    void hang_up(int listener);
    bool send(uint64_t id, int64_t value, int error, uint32_t flags);
    // The listener that has reported it; -1 if nobody waits for an answer any more.
    [[nodiscard]] int listener_of(uint64_t id) const;
    // The same for one that is about to get its answer, which is then no longer listed as waiting.
    int answered(uint64_t id);

    Loop& loop_;
    Handler handler_;
    std::vector<Listener> listeners_;
    // The last notification of each thread, by tid; the caller of each notification.
    std::unordered_map<pid_t, uint64_t> waiting_;
    std::unordered_map<uint64_t, Caller> callers_;
};

}  // namespace gpr
