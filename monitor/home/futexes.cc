#include "monitor/home/futexes.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "monitor/home/home.h"
#include "monitor/home/vfork_children.h"
#include "monitor/tracee/fault_origin.h"
#include "syscall/table.h"

namespace gpr::home {

namespace {

// The pauses between looks at the word that a vfork child waits for.
constexpr std::chrono::milliseconds look_first{1}, look_at_least{16};

bool is_in_call(pid_t tid, uint32_t number) {
    FaultOrigin origin = fault_origin(tid);
    return origin.kind == FaultOrigin::Kind::unknown ||
           (origin.kind == FaultOrigin::Kind::kernel && origin.call == static_cast<long>(number));
}

}  // namespace

Futexes::Futexes(Home& home) : home_(home), news_(home.loop), moves_(home.loop, home.pager, news_) {
    home.acceptors.each([this](RemoteNode& node) { news_.add_peer(node.id, node.link); });
}

void Futexes::watch_futexes(std::unique_ptr<CallWatch> watch) {
    news_.use(std::move(watch), [this](pid_t pid, pid_t tid, const FutexWakeCall& wake) {
        if (tid != 0) home_.pager.on_past_progress(tid);
        if (HomeProcess* process = home_.find_process(pid)) send_futex_wake(*process, wake);
    });
}

// Wakes waiters on other nodes. It may wake one too many; users of futexes must expect that
// (futex(2), "spurious wake-up").
void Futexes::tell_futex_wake(HomeProcess& process, const Notification& n) {
    if (news_.tells(n.number, n.args)) return;
    for (const FutexWakeCall& wake : futex_wakes_of(n.number, n.args)) tell_wake(process, wake);
}

void Futexes::tell_wake(HomeProcess& process, const FutexWakeCall& wake) {
    if (is_shared_word(*process.fragment, {wake.address})) return;
    auto is_there = [](const auto& entry) { return entry.second->remote(); };
    if (std::any_of(process.threads.begin(), process.threads.end(), is_there)) {
        send_futex_wake(process, wake);
    }
}

void Futexes::futex_call(HomeProcess& process, HomeThread& thread, const Notification& n) {
    if (n.number == number_futex_requeue || !words_changed_by(n.number, n.args).empty()) {
        spawn(futex_call_in_memory(process, thread, n));
        return;
    }
    if (auto move = futex_move_of(n.number, n.args)) {
        spawn(move_call(process.pid, process.fragment, *move, n));
        return;
    }
    tell_futex_wake(process, n);
    home_.notifier->let_it_run(n.id);
}

Task<void> Futexes::move_call(pid_t pid, std::shared_ptr<Fragment> fragment, FutexMove move,
                              Notification n) {
    std::vector<uint64_t> args(std::begin(n.args), std::end(n.args));
    const auto result = co_await moves_.make(fragment, pid, move, std::move(args));
    if (result) {
        home_.notifier->reply_raw(n.id, *result);
        co_return;
    }
    HomeProcess* process = home_.find_process(pid);
    if (process && process->fragment == fragment) tell_futex_wake(*process, n);
    home_.notifier->let_it_run(n.id);
}

// A futex call for which words must be held in memory, or read to know what it wakes.
Task<void> Futexes::futex_call_in_memory(HomeProcess& process, HomeThread& thread, Notification n) {
    pid_t pid = process.pid, tid = thread.tid;
    std::shared_ptr<Fragment> fragment = process.fragment;
    uint64_t hold = 0;
    std::vector<FutexWord> requeued;
    const bool requeues = n.number == number_futex_requeue;
    if (requeues) {
        requeued = co_await futex_array(home_.pager, fragment, n.number, n.args);
    } else {
        hold = co_await hold_for_call(home_.pager, fragment, n.number, n.args);
    }
    HomeThread* still = home_.find_thread(pid, tid);
    if (!still || still->process->fragment != fragment) {  // it has ended, or is in exec
        home_.pager.supply.release(hold);
        co_return;
    }
    if (!requeued.empty()) {
        news_.moves_to(requeued.back().address);
        tell_wake(*still->process, wake_of_requeue(requeued));
    } else if (!requeues && !is_pi_call(n.number, n.args)) {
        // Of locks with priority inheritance all waiters are here.
        tell_futex_wake(*still->process, n);
    }
    // Who came for this call stays until it is made, however long the words have taken.
    if (hold != 0) still->visits_until = std::max(still->visits_until, Clock::now() + visit_time);
    spawn(release_after_call(home_.loop, home_.pager, hold, tid, n.instruction_pointer));
    home_.notifier->let_it_run(n.id);
}

bool Futexes::is_futex_call(uint32_t number) {
    const Row* row = find_row(number);
    return number == number_futex_wait || (row && row->handlers.here == AtHome::futex);
}

// A wake is also sent to the nodes with its owner's threads. In a session that is not mixed we do
// not see the wakes of threads there, so the word that a vfork child waits for is polled.
void Futexes::call_of_vfork_child(HomeThread& thread, const Notification& n) {
    const HomeProcess& child = *thread.process;
    if (HomeProcess* owner = home_.vfork_children.owner_of_memory(child)) {
        for (const FutexWakeCall& wake : futex_wakes_of(n.number, n.args)) {
            if (!is_shared_word(*owner->fragment, {wake.address})) send_futex_wake(*owner, wake);
        }
        auto wait = futex_wait_of(n.number, n.args);
        thread.futex_waits++;
        bool lies_here = wait && is_shared_word(*owner->fragment, {wait->address});
        if (wait && !lies_here && !home_.policy.mixed()) {
            spawn(see_wait_through(child.pid, thread.tid, *wait));
        }
    }
    home_.notifier->let_it_run(n.id);
}

Task<void> Futexes::see_wait_through(pid_t child, pid_t tid, FutexWait wait) {
    const HomeThread* thread = home_.find_thread(child, tid);
    uint64_t number = thread->futex_waits;
    for (auto pause = look_first;; pause = std::min(2 * pause, look_at_least)) {
        co_await home_.loop.sleep(pause);
        thread = home_.find_thread(child, tid);
        if (!thread || thread->futex_waits != number || !is_in_call(tid, wait.call)) co_return;
        HomeProcess* owner = home_.vfork_children.owner_of_memory(*thread->process);
        if (!owner) co_return;
        std::shared_ptr<Fragment> fragment = owner->fragment;
        uint32_t now = 0;
        bool read = co_await home_.pager.memory.read(*fragment, {wait.address},
                                                     std::as_writable_bytes(std::span(&now, 1)));
        if (!read || now == wait.expected) continue;
        FutexWakeCall wake{wait.address, INT_MAX, 0xffffffff, wait.shared};
        co_await wake_futex_held(home_.pager, *fragment, wake);
        co_return;
    }
}

void Futexes::send_futex_wake(HomeProcess& process, const FutexWakeCall& wake) {
    if (process.started_remotely) home_.stats.futex_wakes += news_.tell(process.pid, wake);
}

void Futexes::on_frame(const Frame& frame, NodeId from) {
    auto session = frame->session();
    if (session.isFutexWaiting()) {
        news_.heard(from, session.getFutexWaiting());
    } else if (session.isFutexWoken()) {
        spawn(on_futex_wake(frame, from));
    } else if (session.getFutexMove().getDone()) {
        moves_.on_answer(session.getFutexMove());
    } else {
        spawn(on_futex_move(frame, from));
    }
}

// A thread of that node has made a wake. Waiters at a third node are told from here.
Task<void> Futexes::on_futex_wake(Frame frame, NodeId from) {
    { auto guard = co_await home_.metadata.lock(); }
    auto wake = frame->session().getFutexWoken();
    HomeProcess* process = home_.find_process(wake.getPid());
    if (!process || !process->fragment) co_return;
    std::shared_ptr<Fragment> fragment = process->fragment;
    if (process->started_remotely) news_.tell(process->pid, FutexNews::told(wake), from);
    co_await wake_futex_held(home_.pager, *fragment, FutexNews::told(wake));
}

Task<void> Futexes::on_futex_move(Frame frame, NodeId from) {
    { auto guard = co_await home_.metadata.lock(); }
    auto move = frame->session().getFutexMove();
    HomeProcess* process = home_.find_process(move.getPid());
    auto fragment = process ? process->fragment : nullptr;
    co_await moves_.serve(fragment, frame, home_.acceptors.at(from).link, from);
}

}  // namespace gpr::home
