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
#include "transport/loop.h"

namespace gpr {

struct Notification {
    uint64_t id;
    pid_t tid;  // in the supervisor's pid namespace
    uint32_t number;
    uint64_t args[6];
    uint64_t instruction_pointer;

    // Whether the call was made through the vsyscall page, which the kernel emulates
    // (arch/x86/entry/vsyscall): it returns our answer, and cannot be repeated or made elsewhere.
    [[nodiscard]] bool is_vsyscall() const { return instruction_pointer >> 12 == 0xffffffffff600; }
};

class Notifier {
public:
    using Handler = std::function<void(const Notification&)>;

    Notifier(Loop& loop, Handler handler) : loop_(loop), handler_(std::move(handler)) {}

    // Reports the calls of all processes that have the listener's filter.
    void listen(std::shared_ptr<Fd> listener);

    // All return false if the caller is gone or was interrupted: it does not see the answer.
    bool reply(uint64_t id, int64_t value) const;
    // error: a positive errno or a kernel-internal restart code (512..516)
    bool reply_error(uint64_t id, int error) const;
    // The kernel's convention: -4095..-1 is an error.
    bool reply_raw(uint64_t id, int64_t result) const;
    bool let_it_run(uint64_t id) const;
    // Puts a copy of our fd into the caller's table, close-on-exec, as `number`, or as any free
    // number if that is 0. The new number is the result of the call.
    bool reply_with_fd(uint64_t id, int fd, int number = 0) const;
    // The same without a result for the call, replacing what `number` refers to. Returns the
    // kernel's result.
    [[nodiscard]] int64_t put_fd(uint64_t id, int fd, int number, bool closes_on_exec) const;
    [[nodiscard]] bool still_valid(uint64_t id) const;

    // How many threads wait for an answer, parked ones included. None of them can run.
    [[nodiscard]] size_t waiting() const { return waiting_.size(); }
    void on_thread_gone(pid_t tid);

    // Handles the notifications that are pending, without blocking.
    void poll();

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
    bool send(uint64_t id, int64_t value, int error, uint32_t flags) const;
    // The listener that has reported it; -1 if nobody waits for an answer any more.
    [[nodiscard]] int listener_of(uint64_t id) const;
    // The same for one that is about to get its answer, which is then no longer listed as waiting.
    int answered(uint64_t id) const;

    Loop& loop_;
    Handler handler_;
    std::vector<Listener> listeners_;
    // The last notification of each thread, by tid; the caller of each notification.
    mutable std::unordered_map<pid_t, uint64_t> waiting_;
    mutable std::unordered_map<uint64_t, Caller> callers_;
};

}  // namespace gpr
