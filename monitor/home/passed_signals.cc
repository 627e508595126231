#include "monitor/home/passed_signals.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "monitor/home/home.h"
#include "monitor/home/sent_signal.h"
#include "monitor/home/signal_actions.h"
#include "monitor/node/signal_wire.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/stub_signals.h"

namespace gpr::home {

namespace {

constexpr uint64_t all_signals = ~0ULL;
constexpr uint64_t bit_of(int signal) { return 1ULL << (signal - 1); }
// A parked thread takes a signal as soon as it gets a CPU; one that waits for its vfork child does
// not.
constexpr std::chrono::milliseconds longest_taking{10};
constexpr std::chrono::microseconds looks_every{20};

uint64_t blocked_now(pid_t tid) { return trace::signal_set(tid, "SigBlk:"); }

// The stub is locked.
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

// Only the process itself may send itself a signal that says anything of its origin.
Task<void> queue(HomeThread& thread, siginfo_t info) {
    StubThread& stub = *thread.stub;
    stub.scratch().put(0, info);
    auto pid = static_cast<uint64_t>(thread.process->pid), tid = static_cast<uint64_t>(thread.tid);
    auto number = static_cast<uint64_t>(info.si_signo);
    uint64_t at = stub.scratch_address().value;
    co_await run_one(stub, Call{SYS_rt_tgsigqueueinfo, {pid, tid, number, at}, 0});
}

}  // namespace

// The thread stands in the stop before the signal's delivery. A signal that is blocked then is
// queued again by the kernel, as it was. Others wait with it, but those that end the program.
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

// The thread stands in the stop before its delivery. What comes until it is handled there waits
// here, as it would behind one that a busy CPU is about to handle: the kernel keeps the order and
// makes one of several alike. What has no handler acts at once.
void PassedSignals::pass_on(HomeThread& thread, const siginfo_t& info) {
    HomeProcess& process = *thread.process;
    uint64_t mask = trace::signal_mask(thread.tid);
    uint32_t serial = ++thread.signals_passed & ~others_wait;
    uint64_t pending = trace::pending_signals(thread.tid) & process.caught_signals;
    // In a call with a mask of its own ptrace tells of the one that will be when the call is over.
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

// serial: 0 if the acceptor had the signal from elsewhere, such as a fault of the program.
void PassedSignals::handler_begun(HomeThread& thread, uint32_t serial, uint64_t mask) {
    if (!thread.remote()) return;
    if (thread.passed && thread.passed->serial != serial) {
        thread.passed->mask = mask;
        return;
    }
    auto begun = std::exchange(thread.passed, std::nullopt);
    if (begun && (serial & others_wait)) {
        spawn(let_others_come(thread, *begun, mask));
    } else {
        spawn(take_own_mask(thread, mask));
    }
}

// The handler waits for them, or for the word that there is none that it does not block.
Task<void> PassedSignals::let_others_come(HomeThread& thread, PassedSignal begun, uint64_t mask) {
    std::shared_ptr<StubThread> stub = thread.stub;
    co_await take_own_mask(thread, mask);
    if (stub->dead() || thread.passed) co_return;
    FrameBuilder frame;
    auto word = frame.session().initSignal();
    word.setPid(thread.process->pid);
    word.setTid(thread.tid);
    word.setInfo(signal_bytes(begun.info));
    word.setHandled(true);
    home_.acceptors.at(thread.node).link.send(frame, Priority::urgent);
}

// It came there too late: the thread was leaving, the program has no handler any more, or another
// handler has begun that blocks it. One that was on its way when its thread came home is no news.
void PassedSignals::came_back(HomeThread& thread, uint32_t serial) {
    if (!thread.passed || thread.passed->serial != serial) return;
    HomeProcess& process = *thread.process;
    if (!home_.signal_actions.actions_of(process).locked()) {
        process.caught_signals &= trace::signal_set(process.pid, "SigCgt:");
    }
    spawn(take_back(thread, true));
}

// The kernel here has it again, before those that came later. to_shadow: which takes it, and
// others, if the thread does not block them; else it takes none.
Task<void> PassedSignals::take_back(HomeThread& thread, bool to_shadow) {
    PassedSignal back = *std::exchange(thread.passed, std::nullopt);
    int number = back.info.si_signo;
    spdlog::trace("signal {} of tid {} came back", number, thread.tid);
    StubThread& stub = *thread.stub;
    {
        auto guard = co_await stub.lock();
        co_await set_mask(stub, all_signals);
        co_await queue(thread, back.info);
        thread.requeued.add(back.info);
        if (stub.dead() || !to_shadow) co_return;
        co_await set_mask(stub, back.mask);
    }
    if (!stub.dead()) wake_others(thread, back.mask);
}

// The thread ends without having seen it. One that was sent to it alone ends with it.
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

// The shadow's mask is the thread's: the kernel chooses by it who gets a signal, and when.
Task<void> PassedSignals::take_own_mask(HomeThread& thread, uint64_t mask) {
    StubThread& stub = *thread.stub;
    {
        auto guard = co_await stub.lock();
        co_await set_mask(stub, mask);
    }
    if (!stub.dead()) wake_others(thread, mask);
}

// When a thread blocks a signal that waits for the process, the kernel wakes one that does not. It
// does not when that is done by ptrace, nor later, when the thread's own mask blocks no more. A
// thread that was in a stop looks.
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

// Somebody who is at the acceptor has sent it. It is on its way there before the sender goes on.
Task<void> PassedSignals::pass_on_sent(SentSignal signal) {
    auto is_meant = [&](const HomeProcess& process) {
        bool named =
            process.threads.contains(signal.process) || process.threads.contains(signal.thread);
        return named || (signal.process == 0 && signal.thread == 0);
    };
    auto is_taken = [&] {
        return std::none_of(home_.processes.begin(), home_.processes.end(), [&](const auto& p) {
            return is_meant(*p.second) && is_about_to_be_taken(*p.second, signal);
        });
    };
    auto until = Clock::now() + longest_taking;
    while (!is_taken() && Clock::now() < until) co_await home_.loop.sleep(looks_every);
    home_.waits.poll();
}

}  // namespace gpr::home
