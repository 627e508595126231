// A kernel thread in the stub: parked, or doing one operation for us.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "monitor/tracee/context_raw.h"
#include "monitor/tracee/filter_notifier.h"
#include "monitor/tracee/mailbox.h"
#include "transport/loop.h"

namespace gpr {

struct Call {
    uint64_t number = 0;
    uint64_t args[6] = {};
    int64_t result = 0;
};

// The result of calls in a thread that died meanwhile.
inline constexpr int64_t thread_gone = -3;  // -ESRCH

class StubThread {
public:
    StubThread(Scheduler& scheduler, Mailbox& mailbox, Mailbox::SlotIndex slot)
        : scheduler_(scheduler),
          mailbox_(mailbox),
          slot_(slot),
          mutex_(scheduler),
          changed_(scheduler) {
        watch_parks();
    }

    // Events, from the code that reads the listener and the waits. caller: the thread that parks,
    // in our pid namespace. It must always be the same kernel thread. One that parks on a futex
    // tells by itself.
    void on_park(FilterNotifier& notifier, uint64_t notification, pid_t caller);
    void on_death();

    // Runs one system call (or a batch that stops at the first error) in the thread, once it is
    // parked. Calls of several coroutines queue.
    Task<int64_t> call(uint64_t number, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0,
                       uint64_t d = 0, uint64_t e = 0, uint64_t f = 0);
    Task<void> run(std::vector<Call>& calls);
    // For calls that must all succeed. what: for the error.
    Task<Result<void>> run_all(std::vector<Call> calls, const char* what);
    // run() for calls whose pointers refer to the slot's scratch or bounce area: lock, fill it,
    // run.
    [[nodiscard]] auto lock() { return mutex_.lock(); }
    Task<void> run_locked(std::vector<Call>& calls);

    // For a program's call in run_locked(), while the thread is in a ptrace stop with this rip:
    // whether the kernel has seen the call, so that it can no longer be taken back. A call that is
    // taken back ends with -ERESTARTNOINTR.
    [[nodiscard]] bool has_begun(uint64_t rip) const;
    void take_back(pid_t host_tid, user_regs_struct regs);

    // Puts a copy of our descriptor into the thread's table, close-on-exec, as `number`, which must
    // not be 0. False if the thread died or may not have such a number.
    Task<bool> take_fd(int fd, int number);
    // The same, replacing what `number`, which may be 0, refers to. Returns the kernel's result.
    Task<int64_t> put_fd(int fd, int number, bool closes_on_exec);
    // Before become(): what only the thread itself can do for the context. The kernel allocates
    // room for AMX tiles if it has any, and the flag of CPUID becomes the context's.
    Task<void> prepare(const ThreadContext& context);
    // Makes the thread leave the stub and continue as the program. False if it died.
    Task<bool> resume(const ThreadContext& context);
    // Redirects a thread that is in a ptrace stop with these registers to the stub's entry and
    // resumes it.
    void capture(pid_t host_tid, user_regs_struct regs);

    // Waits until the thread has parked, or died.
    Task<void> parked();
    // The same as resume(), but by ptrace, for a thread that has parked and was then stopped. Only
    // complete after prepare().
    void become(pid_t host_tid, const ThreadContext& context);

    [[nodiscard]] bool in_stub() const { return state_ != State::in_program; }
    [[nodiscard]] bool working() const { return state_ == State::working; }
    [[nodiscard]] bool dead() const { return state_ == State::dead; }
    [[nodiscard]] Mailbox::SlotIndex slot() const { return slot_; }
    [[nodiscard]] Mailbox& mailbox() const { return mailbox_; }
    // For structures that its calls point to.
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
    Task<void> make_room(const ThreadContext& context);
    void write_rest(const ThreadContext& context);
    void send();
    void note_parked();
    // Hears when it parks on its futex.
    void watch_parks();
    void wake();
    void write_calls(std::span<const Call> calls);
    // How many of the given calls were made; stores their results.
    size_t take_results(std::span<Call> calls) const;
    [[nodiscard]] HostileMemory slot_memory() const { return mailbox_.slot(slot_); }
    void point_at_entry(pid_t host_tid, user_regs_struct regs) const;

    Scheduler& scheduler_;
    Mailbox& mailbox_;
    Mailbox::SlotIndex slot_;
    State state_ = State::arriving;
    FilterNotifier* notifier_ = nullptr;
    uint64_t notification_ = 0;
    pid_t host_tid_ = 0;
    uint32_t given_ = 0;
    bool resuming_ = false;
    bool calls_given_ = false;
    bool taken_back_ = false;
    bool has_tiles_ = false;                              // the kernel has allocated room for them
    std::optional<bool> has_id_flag_;                     // the flag of CPUID, while in the stub
    std::optional<std::pair<uint64_t, uint64_t>> bases_;  // fs and gs, while it is in the stub
    uint32_t parks_ = 0;                                  // that we have heard of
    Watch park_;
    AsyncMutex mutex_;
    Signal changed_;
};

}  // namespace gpr
