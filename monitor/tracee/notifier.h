// System calls that wait for a supervisor's answer before they are made.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>

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

    Notifier() = default;
    virtual ~Notifier() = default;
    Notifier(const Notifier&) = delete;
    Notifier& operator=(const Notifier&) = delete;

    // All return false if the caller is gone or was interrupted: it does not see the answer.
    bool reply(uint64_t id, int64_t value) { return reply_raw(id, value); }
    // error: a positive errno or a kernel-internal restart code (512..516)
    bool reply_error(uint64_t id, int error) { return reply_raw(id, -error); }
    // The kernel's convention: -4095..-1 is an error.
    virtual bool reply_raw(uint64_t id, int64_t result) = 0;
    virtual bool let_it_run(uint64_t id) = 0;
    [[nodiscard]] virtual bool still_valid(uint64_t id) const = 0;

    // How many threads wait for an answer, parked ones included. None of them can run.
    [[nodiscard]] virtual size_t waiting() const = 0;
    // Nobody waits there any more.
    virtual void on_thread_gone(pid_t tid) = 0;

    // Handles the notifications that are pending, without blocking.
    virtual void poll() = 0;
};

}  // namespace gpr
