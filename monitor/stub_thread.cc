#include "monitor/stub_thread.h"

#include <atomic>

#include "monitor/ptrace.h"

namespace gpr {

void StubThread::on_park(const Notifier& notifier, uint64_t notification) {
    notifier_ = &notifier;
    notification_ = notification;
    bool busy = state_ == State::working || state_ == State::in_program;
    bool lost = busy && mailbox_.slot(slot_).taken != given_;
    if (state_ == State::ordered || lost) {
        send();
        return;
    }
    state_ = State::parked;
    changed_.notify_all();
}

void StubThread::on_death() {
    state_ = State::dead;
    changed_.notify_all();
}

void StubThread::capture(pid_t host_tid, user_regs_struct regs) {
    bases_ = {regs.fs_base, regs.gs_base};
    point_at_entry(host_tid, regs);
    if (state_ != State::dead) state_ = State::arriving;
    trace::resume(host_tid);
}

void StubThread::point_at_entry(pid_t host_tid, user_regs_struct regs) const {
    regs.rip = GPR_STUB_CODE;
    regs.rdi = Mailbox::slot_address(slot_).value;
    regs.orig_rax = ~0UL;
    trace::set_registers(host_tid, regs);
}

void StubThread::send() {
    // A refusal means that a signal interrupted the park: it will park again, see on_park.
    bool sent = notifier_->reply(notification_, 0);
    state_ = !sent ? State::ordered : resuming_ ? State::in_program : State::working;
}

Task<bool> StubThread::give(uint32_t op) {
    while (state_ != State::parked && state_ != State::dead) co_await changed_.wait();
    if (state_ == State::dead) co_return false;
    volatile gpr_slot& s = mailbox_.slot(slot_);
    s.op = op;
    resuming_ = op == GPR_OP_RESUME;
    s.given = ++given_;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    send();
    co_return true;
}

Task<int64_t> StubThread::call(uint64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                               uint64_t e, uint64_t f) {
    std::vector<Call> calls{Call{number, {a, b, c, d, e, f}, 0}};
    co_await run(calls);
    co_return calls[0].result;
}

Task<void> StubThread::run(std::vector<Call>& calls) {
    auto guard = co_await mutex_.lock();
    co_await run_locked(calls);
}

Task<void> StubThread::run_locked(std::vector<Call>& calls) {
    for (auto& c : calls) c.result = thread_gone;
    calls_given_ = taken_back_ = false;
    size_t first = 0;
    while (first < calls.size()) {
        while (state_ != State::parked && state_ != State::dead) co_await changed_.wait();
        if (state_ == State::dead) co_return;
        if (taken_back_) {
            calls[first].result = -trace::restart_nointr;
            co_return;
        }
        size_t count = std::min<size_t>(calls.size() - first, GPR_CALLS_MAX);
        volatile gpr_slot& s = mailbox_.slot(slot_);
        for (size_t i = 0; i < count; i++) {
            s.calls[i].number = calls[first + i].number;
            for (int a = 0; a < 6; a++) s.calls[i].args[a] = calls[first + i].args[a];
            s.calls[i].result = thread_gone;
        }
        s.count = static_cast<uint32_t>(count);
        s.done = 0;
        s.stop_on_error = 1;
        calls_given_ = true;
        bool alive = co_await give(GPR_OP_CALLS);
        if (!alive) co_return;
        while (state_ != State::parked && state_ != State::dead) co_await changed_.wait();
        uint32_t done = s.done;
        for (size_t i = 0; i < done; i++) calls[first + i].result = s.calls[i].result;
        if (done < count && taken_back_) calls[first + done].result = -trace::restart_nointr;
        if (done < count) co_return;
        int64_t last = calls[first + count - 1].result;
        if (last < 0 && last >= -4095) co_return;
        first += count;
    }
}

bool StubThread::has_begun(uint64_t rip) const {
    constexpr uint64_t begin = GPR_STUB_PROGRAM_CALL, end = begin + 16;
    const volatile gpr_slot& s = mailbox_.slot(slot_);
    if (!calls_given_ || s.taken != given_) return false;
    return (rip > begin && rip < end) || !(s.calls[0].number & GPR_CALL_OF_PROGRAM);
}

// It parks again, wherever it is on its way to the call.
void StubThread::take_back(pid_t host_tid, user_regs_struct regs) {
    taken_back_ = true;
    if (!calls_given_) return;
    mailbox_.slot(slot_).count = 0;
    point_at_entry(host_tid, regs);
}

Task<bool> StubThread::take_fd(int fd, int number) {
    auto guard = co_await mutex_.lock();
    for (;;) {
        while (state_ != State::parked && state_ != State::dead) co_await changed_.wait();
        if (state_ == State::dead) co_return false;
        // The number is the park's answer; the stub takes what is not 0 for an interruption, and
        // parks again. So it does after a real one, when there is nothing to answer.
        bool taken = notifier_->reply_with_fd(notification_, fd, number);
        if (!taken && notifier_->still_valid(notification_)) co_return false;
        state_ = State::arriving;
        if (taken) co_return true;
    }
}

Task<bool> StubThread::resume(const ThreadContext& context) {
    auto guard = co_await mutex_.lock();
    while (state_ != State::parked && state_ != State::dead) co_await changed_.wait();
    if (state_ == State::dead) co_return false;
    auto room = mailbox_.frame(slot_);
    uint64_t address = Mailbox::slot_address(slot_).value + GPR_SLOT_FRAME;
    GPR_ASSERT(write_sigreturn_frame(context, room.data(), room.size(), address) != 0);
    volatile gpr_slot& s = mailbox_.slot(slot_);
    std::pair<uint64_t, uint64_t> bases{context.regs.fs_base, context.regs.gs_base};
    s.set_bases = std::exchange(bases_, std::nullopt) != bases;
    s.fs_base = bases.first;
    s.gs_base = bases.second;
    s.frame = address;
    bool alive = co_await give(GPR_OP_RESUME);
    co_return alive;
}

Task<void> StubThread::parked() {
    while (state_ != State::parked && state_ != State::dead) co_await changed_.wait();
}

void StubThread::become(pid_t host_tid, const ThreadContext& context) {
    bases_.reset();
    state_ = State::in_program;
    ThreadContext begin = context;
    begin.regs.orig_rax = ~0UL;
    apply_context(host_tid, begin);
}

}  // namespace gpr
