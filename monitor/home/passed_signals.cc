#include "monitor/home/passed_signals.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "monitor/home/debugging.h"
#include "monitor/home/home.h"
#include "monitor/home/signal_actions.h"
#include "monitor/home/signals.h"
#include "monitor/node/signal_wire.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/stub_signals.h"

namespace gpr::home {

namespace {

constexpr uint64_t all_signals = ~0ULL;
constexpr uint64_t bit_of(int signal) { return 1ULL << (signal - 1); }
constexpr std::chrono::milliseconds longest_taking{10};
constexpr std::chrono::seconds longest_run{1};  // until a thread gets a processor
constexpr std::chrono::microseconds looks_every{20};

uint64_t blocked_now(pid_t tid) { return trace::signal_set(tid, "SigBlk:"); }

// The stub must be locked.
Task<int64_t> run_one(StubThread& stub, Call call) {
    std::vector<Call> calls{call};
    co_await stub.run_locked(calls);
    co_return calls[0].result;
}

Task<void> set_mask(StubThread& stub, uint64_t mask) {
    stub.scratch().put(0, mask);
    uint64_t at = stub.scratch_address().value;
    co_await run_one(stub, Call{SYS_rt_sigprocmask, {SIG_SETMASK, at, 0, sizeof mask}, 0});
}

// Sent by the process to itself, because only then may si_code be anything.
Task<void> queue(StubThread& stub, const HomeThread& thread, siginfo_t info) {
    stub.scratch().put(0, info);
    auto pid = static_cast<uint64_t>(thread.process->pid), tid = static_cast<uint64_t>(thread.tid);
    auto number = static_cast<uint64_t>(info.si_signo);
    uint64_t at = stub.scratch_address().value;
    co_await run_one(stub, Call{SYS_rt_tgsigqueueinfo, {pid, tid, number, at}, 0});
}

}  // namespace

// The thread is in the stop before the signal's delivery. A signal that is blocked at that point is
// queued again by the kernel, unchanged. Blocks all other signals as well, except those that would
// end the program.
void PassedSignals::leave_in_kernel(HomeThread& thread, int signal) {
    if (auto info = trace::signal_info(thread.tid)) thread.requeued.add(*info);
    const HomeProcess& process = *thread.process;
    uint64_t deadly = deadly_signals(process.pid, process.caught_signals | bit_of(signal));
    trace::set_signal_mask(thread.tid, trace::signal_mask(thread.tid) | ~deadly);
    trace::resume(thread.tid, signal);
}

void PassedSignals::keep_order(HomeThread& thread, int signal) {
    if (!thread.requeued.has(signal)) return;
    auto info = trace::signal_info(thread.tid);
    if (!info) return;
    bool last = !(trace::pending_signals(thread.tid) >> (signal - 1) & 1);
    trace::set_signal_info(thread.tid, thread.requeued.next(*info, last));
}

// The thread is in the stop before the signal's delivery. Until the acceptor has started its
// handler, further signals wait in this kernel, as if they were behind a signal that a busy CPU is
// about to handle; the kernel keeps their order and merges equal ones. Signals without a handler
// act at once.
void PassedSignals::pass_on(HomeThread& thread, const siginfo_t& info) {
    HomeProcess& process = *thread.process;
    uint64_t mask = trace::signal_mask(thread.tid);
    uint32_t serial = ++thread.signals_passed & ~others_wait;
    uint64_t pending = trace::pending_signals(thread.tid) & process.caught_signals;
    // During a call with a temporary mask (such as ppoll), ptrace shows the mask that will be
    // restored.
    uint64_t held = thread.is_in(HomeThread::Business::call) && (pending & mask)
                        ? blocked_now(thread.tid)
                        : mask;
    if ((pending & ~held) != 0) serial |= others_wait;
    thread.passed = PassedSignal{info, serial, mask, thread.is_in(HomeThread::Business::call)};
    trace::set_signal_mask(thread.tid, mask | process.caught_signals);
    if (thread.is_in(HomeThread::Business::call)) return;
    FrameBuilder frame;
    auto delivery = frame.session().initSignal();
    delivery.setPid(process.pid);
    delivery.setTid(thread.tid);
    delivery.setInfo(signal_bytes(info));
    delivery.setSerial(thread.passed->serial);
    home_.acceptors.at(thread.node).link.send(frame, Priority::urgent);
}

// serial: 0 if the acceptor's kernel raised the signal itself, such as for a fault of the program.
void PassedSignals::handler_begun(HomeThread& thread, uint32_t serial, uint64_t mask) {
    if (!thread.remote()) return;
    const bool keeps_mask = mask & mask_is_kept;
    if (thread.passed && thread.passed->serial != serial) {
        if (!keeps_mask) thread.passed->mask = mask;
        return;
    }
    if (keeps_mask) return;
    auto begun = std::exchange(thread.passed, std::nullopt);
    if (begun && (serial & others_wait)) {
        spawn(let_others_come(thread, *begun, mask));
    } else {
        spawn(take_own_mask(thread, mask));
    }
}

// The handler waits until home has sent the other signals, or has said that there is none that it
// does not block.
Task<void> PassedSignals::let_others_come(HomeThread& thread, PassedSignal begun, uint64_t mask) {
    std::shared_ptr<StubThread> stub = thread.stub;
    co_await take_own_mask(thread, mask);
    if (stub->dead() || thread.passed || !thread.remote()) co_return;  // it may have come home
    FrameBuilder frame;
    auto word = frame.session().initSignal();
    word.setPid(thread.process->pid);
    word.setTid(thread.tid);
    word.setInfo(signal_bytes(begun.info));
    word.setHandled(true);
    home_.acceptors.at(thread.node).link.send(frame, Priority::urgent);
}

// The acceptor could not deliver the signal: the thread was leaving, the program no longer has a
// handler, or another handler has started that blocks it. Ignored if the thread came home
// meanwhile.
void PassedSignals::came_back(HomeThread& thread, const siginfo_t& info, uint32_t serial) {
    if (serial == 0) {  // the thread has sent it to itself there
        if (thread.remote()) spawn(send_to_itself(thread, info));
        return;
    }
    if (!thread.passed || thread.passed->serial != serial) return;
    HomeProcess& process = *thread.process;
    if (!home_.signal_actions.actions_of(process).locked()) {
        process.caught_signals &= trace::signal_set(process.pid, "SigCgt:");
    }
    spawn(take_back(thread, true));
}

Task<void> PassedSignals::send_to_itself(HomeThread& thread, siginfo_t info) {
    StubThread& stub = *thread.stub;
    auto guard = co_await stub.lock();
    co_await queue(stub, thread, info);
}

// Puts the signal back into this kernel's queue, before those that came later. to_shadow: the
// shadow then takes it, and others, unless the thread blocks them; else the shadow keeps all
// blocked.
Task<void> PassedSignals::take_back(HomeThread& thread, bool to_shadow) {
    PassedSignal back = *std::exchange(thread.passed, std::nullopt);
    int number = back.info.si_signo;
    spdlog::trace("signal {} of tid {} came back", number, thread.tid);
    StubThread& stub = *thread.stub;
    {
        auto guard = co_await stub.lock();
        co_await set_mask(stub, all_signals);
        co_await queue(stub, thread, back.info);
        thread.requeued.add(back.info);
        home_.debugging.came_back(thread, back.info);
        if (stub.dead() || !to_shadow) co_return;
        co_await set_mask(stub, back.mask);
    }
    if (!stub.dead()) wake_others(thread, back.mask);
}

// The thread ends without having handled the signal. One that tgkill(2) sent to this thread alone
// is dropped.
Task<void> PassedSignals::give_to_others(HomeThread& thread) {
    auto passed = std::exchange(thread.passed, std::nullopt);
    if (!passed || passed->info.si_code == SI_TKILL) co_return;
    StubThread& stub = *thread.stub;
    auto guard = co_await stub.lock();
    stub.scratch().put(0, passed->info);
    auto pid = static_cast<uint64_t>(thread.process->pid);
    auto number = static_cast<uint64_t>(passed->info.si_signo);
    uint64_t at = stub.scratch_address().value;
    co_await run_one(stub, Call{SYS_rt_sigqueueinfo, {pid, number, at}, 0});
}

// Gives the shadow the thread's own mask, by which the kernel decides which thread gets a signal.
Task<void> PassedSignals::take_own_mask(HomeThread& thread, uint64_t mask) {
    StubThread& stub = *thread.stub;
    {
        auto guard = co_await stub.lock();
        co_await set_mask(stub, mask);
    }
    if (!stub.dead()) wake_others(thread, mask);
}

// When a thread blocks a signal that is pending for the process, the kernel wakes another thread
// that does not. It does not do so for masks set by ptrace, nor when the thread's own mask is
// restored later. A thread that is interrupted looks for pending signals, so interrupt those.
void PassedSignals::wake_others(const HomeThread& thread, uint64_t mask) {
    const HomeProcess& process = *thread.process;
    if (process.threads.size() < 2 || process.stopped) return;
    uint64_t waiting = trace::signal_set(process.pid, "ShdPnd:") & mask;
    if (waiting == 0) return;
    for (const auto& [tid, other] : process.threads) {
        bool looks = other != &thread && !other->helper && !other->ends() && !other->awaited;
        if (looks && (waiting & ~trace::signal_set(tid, "SigBlk:"))) trace::interrupt(tid);
    }
}

std::optional<SentSignal> PassedSignals::about_to_send(uint32_t number,
                                                       const SyscallArguments& args) const {
    auto signal = sent_signal(number, args);
    if (signal) signal->met_before = home_.signals.met(signal->number);
    return signal;
}

// A thread at the acceptor has sent the signal. It must be on its way to its receiver before the
// sender continues.
Task<void> PassedSignals::pass_on_sent(SentSignal signal) {
    auto is_meant = [&](const HomeProcess& process) {
        bool named =
            process.threads.contains(signal.process) || process.threads.contains(signal.thread);
        return named || (signal.process == 0 && signal.thread == 0);
    };
    auto taking = [&] {
        const bool met = home_.signals.met(signal.number) != signal.met_before;
        Taking most = Taking::done;
        for (const auto& [pid, process] : home_.processes) {
            if (is_meant(*process)) most = std::max(most, taking_of(*process, signal, met));
        }
        return most;
    };
    const auto began = Clock::now();
    for (Taking now = taking(); now != Taking::done; now = taking()) {
        const auto longest = now == Taking::soon ? longest_run : longest_taking;
        if (Clock::now() > began + longest) break;
        co_await home_.loop.sleep(looks_every);
    }
    home_.waits.poll();
}

}  // namespace gpr::home
