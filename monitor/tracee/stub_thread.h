// A kernel thread that is in the stub: parked, or doing one operation for us.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/task.h"
#include "monitor/tracee/context_raw.h"
#include "monitor/tracee/mailbox.h"
#include "monitor/tracee/notifier.h"

namespace gpr {

struct Call {
    uint64_t number = 0;
    uint64_t args[6] = {};
    int64_t result = 0;
};

// The kernel's convention for a thread that died while it worked for us.
inline constexpr int64_t thread_gone = -3;  // -ESRCH

class StubThread {
public:
    StubThread(Scheduler& scheduler, Mailbox& mailbox, Mailbox::SlotIndex slot)
        : scheduler_(scheduler),
          mailbox_(mailbox),
          slot_(slot),
          mutex_(scheduler),
          changed_(scheduler) {}

    // Events, from whoever reads the listener and the waits.
    // caller: who parks, in our pid namespace. Only one kernel thread may ever be this one.
    void on_park(const Notifier& notifier, uint64_t notification, pid_t caller);
    void on_death();

    // Runs one system call (or a batch that stops at the first error) in the thread. Calls from
    // several coroutines queue. Waits until the thread is parked first.
    Task<int64_t> call(uint64_t number, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0,
                       uint64_t d = 0, uint64_t e = 0, uint64_t f = 0);
    Task<void> run(std::vector<Call>& calls);
    // The same, but the pointers refer to what fill() put into the slot's scratch or the bounce.
    [[nodiscard]] auto lock() { return mutex_.lock(); }
    Task<void> run_locked(std::vector<Call>& calls);

    // For a call of the program in run_locked(), while the thread is in a ptrace stop with this
    // rip: whether the kernel has seen the call; then it is too late to take it back. What is taken
    // back ends with -ERESTARTNOINTR.
    [[nodiscard]] bool has_begun(uint64_t rip) const;
    void take_back(pid_t host_tid, user_regs_struct regs);

    // Puts a copy of our descriptor into the thread's table, as `number`, which is not 0. False: it
    // died, or may not have such a number.
    Task<bool> take_fd(int fd, int number);
    // The same over what has the number, which may be 0. The kernel's convention.
    Task<int64_t> put_fd(int fd, int number, bool closes_on_exec);
    // For a context with tiles of AMX the kernel has to know that the thread uses some.
    Task<void> make_room(const ThreadContext& context);
    // The thread leaves the stub and becomes the program. False: it died.
    Task<bool> resume(const ThreadContext& context);
    // Points the thread, which is in a ptrace stop with these registers, at the stub's entry, and
    // lets it run.
    void capture(pid_t host_tid, user_regs_struct regs);

    // The same by ptrace, for a thread that was parked() and has been stopped.
    Task<void> parked();
    void become(pid_t host_tid, const ThreadContext& context);

    [[nodiscard]] bool in_stub() const { return state_ != State::in_program; }
    [[nodiscard]] bool working() const { return state_ == State::working; }
    [[nodiscard]] bool dead() const { return state_ == State::dead; }
    [[nodiscard]] Mailbox::SlotIndex slot() const { return slot_; }
    [[nodiscard]] Mailbox& mailbox() const { return mailbox_; }
    // Where structures lie that its calls point to, and larger ones.
    [[nodiscard]] HostileMemory scratch() const {
        return mailbox_.slot(slot_).part(offsetof(gpr_slot, scratch), sizeof(gpr_slot::scratch));
    }
    [[nodiscard]] HostileMemory bounce() const { return mailbox_.bounce(slot_); }
    [[nodiscard]] Address scratch_address() const {
        return Mailbox::slot_address(slot_) + offsetof(gpr_slot, scratch);
    }

private:
    enum class State { arriving, parked, ordered, working, in_program, dead };

    Task<bool> give(uint32_t op);
    void send();
    void write_calls(std::span<const Call> calls);
    // How many of those given were made, with their results.
    size_t take_results(std::span<Call> calls) const;
    [[nodiscard]] HostileMemory slot_memory() const { return mailbox_.slot(slot_); }
    void point_at_entry(pid_t host_tid, user_regs_struct regs) const;

    Scheduler& scheduler_;
    Mailbox& mailbox_;
    Mailbox::SlotIndex slot_;
    State state_ = State::arriving;
    const Notifier* notifier_ = nullptr;
    uint64_t notification_ = 0;
    pid_t host_tid_ = 0;
    uint32_t given_ = 0;
    bool resuming_ = false;
    bool calls_given_ = false;
    bool taken_back_ = false;
    bool has_tiles_ = false;                              // the kernel has room for them
    std::optional<std::pair<uint64_t, uint64_t>> bases_;  // fs and gs, while it is in the stub
    AsyncMutex mutex_;
    Signal changed_;
};

}  // namespace gpr
