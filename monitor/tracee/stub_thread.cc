#include "monitor/tracee/stub_thread.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>

#include "monitor/tracee/call_stops.h"
#include "monitor/tracee/descriptor_passing.h"
#include "monitor/tracee/extended_state.h"
#include "monitor/tracee/ptrace.h"

namespace gpr {

namespace {
constexpr uint64_t trap_flag = 0x100;  // in eflags: SIGTRAP after each instruction
}  // namespace

void StubThread::on_park(FilterNotifier& notifier, uint64_t notification, pid_t caller) {
    if (host_tid_ == 0) host_tid_ = caller;
    if (host_tid_ != caller) {  // a thread of the program imitates a stub thread
        notifier.reply_error(notification, ENOSYS);
        return;
    }
    notifier_ = &notifier;
    notification_ = notification;
    note_parked();
}

void StubThread::note_parked() {
    bool busy = state_ == State::working || state_ == State::in_program;
    bool lost = busy && !slot_memory().get<uint32_t>(offsetof(gpr_slot, taken)).is(given_);
    // The program may have overwritten `given`. If it stayed wrong, the stub would keep taking an
    // order that was never given, and park again, without end.
    if (lost) slot_memory().put(offsetof(gpr_slot, given), given_);
    if (state_ == State::ordered || lost) {
        send();
        return;
    }
    state_ = State::parked;
    changed_.notify_all();
}

void StubThread::watch_parks() {
    Loop* loop = mailbox_.parking_loop();
    if (!loop || state_ == State::dead) return;
    constexpr size_t at = offsetof(gpr_slot, parks);
    park_ = loop->watch_word(mailbox_.word(slot_, at), parks_, [this] {
        const uint32_t parks = slot_memory().get<uint32_t>(at).to_pass_on();
        if (std::exchange(parks_, parks) == parks) return watch_parks();
        note_parked();
    });
}

void StubThread::wake() {
    syscall(SYS_futex, mailbox_.word(slot_, offsetof(gpr_slot, given)), FUTEX_WAKE, INT_MAX,
            nullptr, nullptr, 0);
}

void StubThread::on_death() {
    state_ = State::dead;
    park_.reset();
    changed_.notify_all();
}

void StubThread::capture(pid_t host_tid, user_regs_struct regs) {
    bases_ = {regs.fs_base, regs.gs_base};
    has_id_flag_ = (regs.eflags & GPR_ID_FLAG) != 0;
    point_at_entry(host_tid, regs);
    if (state_ != State::dead) state_ = State::arriving;
    watch_parks();
    if (mailbox_.parking_loop()) CallStops::end(host_tid);
    trace::resume(host_tid);
}

void StubThread::point_at_entry(pid_t host_tid, user_regs_struct regs) const {
    regs.rip = GPR_STUB_CODE;
    regs.rdi = Mailbox::slot_address(slot_).value;
    regs.orig_rax = ~0UL;
    regs.eflags &= ~trap_flag;  // a program, or its debugger, steps through its own code only
    trace::set_registers(host_tid, regs);
}

void StubThread::send() {
    if (mailbox_.parking_loop()) {
        state_ = resuming_ ? State::in_program : State::working;
        watch_parks();
        wake();
        return;
    }
    // The reply fails if a signal interrupted the park: the thread parks again, see on_park.
    bool sent = notifier_->reply(notification_, 0);
    state_ = !sent ? State::ordered : resuming_ ? State::in_program : State::working;
}

Task<bool> StubThread::give(uint32_t op) {
    while (state_ != State::parked && state_ != State::dead) co_await changed_.wait();
    if (state_ == State::dead) co_return false;
    HostileMemory s = slot_memory();
    s.put(offsetof(gpr_slot, op), op);
    resuming_ = op == GPR_OP_RESUME;
    s.put(offsetof(gpr_slot, given), ++given_);
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

Task<Result<void>> StubThread::run_all(std::vector<Call> calls, const char* what) {
    co_await run(calls);
    for (const Call& each : calls) {
        auto made = from_kernel(each.result, what);
        if (!made) co_return tl::make_unexpected(made.error());
    }
    co_return Result<void>{};
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
        auto part = std::span(calls).subspan(first, count);
        write_calls(part);
        calls_given_ = true;
        bool alive = co_await give(GPR_OP_CALLS);
        if (!alive) co_return;
        while (state_ != State::parked && state_ != State::dead) co_await changed_.wait();
        size_t done = take_results(part);
        if (done < count && taken_back_) calls[first + done].result = -trace::restart_nointr;
        if (done < count) co_return;
        int64_t last = calls[first + count - 1].result;
        if (last < 0 && last >= -4095) co_return;
        first += count;
    }
}

void StubThread::write_calls(std::span<const Call> calls) {
    HostileMemory s = slot_memory();
    for (size_t i = 0; i < calls.size(); i++) {
        gpr_call call{calls[i].number, {}, thread_gone};
        std::copy(std::begin(calls[i].args), std::end(calls[i].args), call.args);
        s.put(offsetof(gpr_slot, calls) + i * sizeof call, call);
    }
    s.put(offsetof(gpr_slot, count), static_cast<uint32_t>(calls.size()));
    s.put(offsetof(gpr_slot, done), uint32_t{0});
    s.put(offsetof(gpr_slot, stop_on_error), uint32_t{1});
}

size_t StubThread::take_results(std::span<Call> calls) const {
    HostileMemory s = slot_memory();
    auto most = static_cast<uint32_t>(calls.size());
    uint32_t done = s.get<uint32_t>(offsetof(gpr_slot, done)).at_most(most);
    for (size_t i = 0; i < done; i++) {
        auto made = s.get<gpr_call>(offsetof(gpr_slot, calls) + i * sizeof(gpr_call));
        // The program can forge these results: callers must bound what they use them for.
        calls[i].result = made.to_pass_on().result;
    }
    return done;
}

bool StubThread::has_begun(uint64_t rip) const {
    constexpr uint64_t begin = GPR_STUB_PROGRAM_CALL, end = begin + 16;
    HostileMemory s = slot_memory();
    if (!calls_given_ || !s.get<uint32_t>(offsetof(gpr_slot, taken)).is(given_)) return false;
    auto number = s.get<gpr_call>(offsetof(gpr_slot, calls)).to_pass_on().number;
    return (rip > begin && rip < end) || !(number & GPR_CALL_OF_PROGRAM);
}

// The thread parks again, wherever it is on its way to the call.
void StubThread::take_back(pid_t host_tid, user_regs_struct regs) {
    taken_back_ = true;
    if (!calls_given_) return;
    slot_memory().put(offsetof(gpr_slot, count), uint32_t{0});
    point_at_entry(host_tid, regs);
}

Task<bool> StubThread::take_fd(int fd, int number) {
    if (mailbox_.parking_loop()) {
        int64_t passed = co_await pass_descriptor(*this, fd, number, true);
        co_return passed >= 0;
    }
    auto guard = co_await mutex_.lock();
    for (;;) {
        while (state_ != State::parked && state_ != State::dead) co_await changed_.wait();
        if (state_ == State::dead) co_return false;
        // The number becomes the result of the park call. The stub treats any result but 0 as an
        // interruption and parks again, as it also does after a real one, when there is nothing to
        // answer.
        bool taken = notifier_->reply_with_fd(notification_, fd, number);
        if (!taken && notifier_->still_valid(notification_)) co_return false;
        state_ = State::arriving;
        if (taken) co_return true;
    }
}

Task<int64_t> StubThread::put_fd(int fd, int number, bool closes_on_exec) {
    if (mailbox_.parking_loop()) {
        int64_t passed = co_await pass_descriptor(*this, fd, number, closes_on_exec);
        co_return passed;
    }
    auto guard = co_await mutex_.lock();
    for (;;) {
        while (state_ != State::parked && state_ != State::dead) co_await changed_.wait();
        if (state_ == State::dead) co_return thread_gone;
        int64_t put = notifier_->put_fd(notification_, fd, number, closes_on_exec);
        if (put >= 0 || notifier_->still_valid(notification_)) co_return put;
        state_ = State::arriving;  // a signal interrupted the park: it parks again
    }
}

Task<void> StubThread::make_room(const ThreadContext& context) {
    if (has_tiles_ || !(extended_state_in_use(context.xstate) & tile_data)) co_return;
    auto guard = co_await mutex_.lock();
    has_tiles_ = co_await give(GPR_OP_TILES);
}

void StubThread::write_rest(const ThreadContext& context) {
    const user_regs_struct& r = context.regs;
    HostileMemory s = slot_memory();
    s.put(offsetof(gpr_slot, ds), static_cast<uint32_t>(r.ds));
    s.put(offsetof(gpr_slot, es), static_cast<uint32_t>(r.es));
    s.put(offsetof(gpr_slot, id_flag), static_cast<uint32_t>(r.eflags & GPR_ID_FLAG));
}

Task<void> StubThread::prepare(const ThreadContext& context) {
    co_await make_room(context);
    const bool flag = (context.regs.eflags & GPR_ID_FLAG) != 0;
    if (has_id_flag_ == flag) co_return;
    auto guard = co_await mutex_.lock();
    write_rest(context);
    const bool alive = co_await give(GPR_OP_REST);
    if (alive) has_id_flag_ = flag;
}

Task<bool> StubThread::resume(const ThreadContext& context) {
    co_await make_room(context);
    auto guard = co_await mutex_.lock();
    while (state_ != State::parked && state_ != State::dead) co_await changed_.wait();
    if (state_ == State::dead) co_return false;
    uint64_t address = Mailbox::slot_address(slot_).value + GPR_SLOT_FRAME;
    GPR_ASSERT(write_sigreturn_frame(context, mailbox_.frame(slot_), address) != 0);
    HostileMemory s = slot_memory();
    std::pair<uint64_t, uint64_t> bases{context.regs.fs_base, context.regs.gs_base};
    uint64_t set_bases = std::exchange(bases_, std::nullopt) != bases;
    s.put(offsetof(gpr_slot, set_bases), set_bases);
    s.put(offsetof(gpr_slot, fs_base), bases.first);
    s.put(offsetof(gpr_slot, gs_base), bases.second);
    s.put(offsetof(gpr_slot, frame), address);
    write_rest(context);
    has_id_flag_.reset();
    bool alive = co_await give(GPR_OP_RESUME);
    co_return alive;
}

Task<void> StubThread::parked() {
    while (state_ != State::parked && state_ != State::dead) co_await changed_.wait();
}

void StubThread::become(pid_t host_tid, const ThreadContext& context) {
    bases_.reset();
    state_ = State::in_program;
    park_.reset();
    if (mailbox_.parking_loop()) CallStops::begin(host_tid);
    ThreadContext begin = context;
    begin.regs.orig_rax = ~0UL;
    apply_context(host_tid, begin);
}

}  // namespace gpr
