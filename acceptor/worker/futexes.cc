#include "acceptor/worker/futexes.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "acceptor/worker/crossings.h"
#include "acceptor/worker/worker.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::worker {

Futexes::Futexes(Worker& worker)
    : worker_(worker), news_(worker.loop), moves_(worker.loop, worker.pager, news_) {
    news_.add_peer(directory_node, worker.link);
}

// Once, when it is first useful. If this host does not allow it, the filter reports the calls
// instead.
void Futexes::watch_futexes() {
    if (std::exchange(watch_tried_, true)) return;
    auto watch = CallWatch::load();
    if (!watch) {
        spdlog::info("calls that wake futexes are stopped: {}", watch.error().message());
        return;
    }
    news_.use(std::move(*watch), [this](pid_t pid, pid_t tid, const FutexWakeCall& wake) {
        if (tid != 0) worker_.pager.on_past_progress(tid);
        if (RemoteProcess* process = worker_.find_process(pid)) send_futex_wake(*process, wake);
    });
}

void Futexes::send_futex_wake(RemoteProcess& process, const FutexWakeCall& wake) {
    news_.tell(process.pid, wake);
}

Task<void> Futexes::futex_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    pid_t pid = process.pid, tid = thread.tid;
    std::shared_ptr<Fragment> fragment = process.fragment;
    std::vector<FutexWord> array;
    std::vector<Address> words{{n.args[0]}};
    if (has_futex_array(n.number)) {
        array = co_await futex_array(worker_.pager, fragment, n.number, n.args);
        if (worker_.find_thread(pid, tid) != &thread) co_return;
        words.clear();
        for (const FutexWord& word : array) words.push_back({word.address});
    }
    // Threads wait at home for words in memory that is used at home; in mixed sessions also for
    // locks with priority inheritance, because one kernel must know who holds them.
    if (is_any_used_at_home(*fragment, words) || (process.mixed && is_pi_call(n.number, n.args))) {
        co_await worker_.crossings.leave_at_call(thread, n);
        co_return;
    }
    const auto move = process.mixed ? futex_move_of(n.number, n.args) : std::nullopt;
    if (move) {
        auto notifier = process.notifier;
        std::vector<uint64_t> args(std::begin(n.args), std::end(n.args));
        const auto result = co_await moves_.make(fragment, pid, *move, std::move(args));
        if (result) notifier->reply_raw(n.id, *result);
        if (result || worker_.find_thread(pid, tid) != &thread) co_return;
    }
    std::vector<FutexWakeCall> wakes;
    uint64_t hold = 0;
    if (n.number == number_futex_requeue && process.mixed && !array.empty()) {
        news_.moves_to(array.back().address);
        wakes = {wake_of_requeue(array)};
    } else if (!has_futex_array(n.number) && !news_.tells(n.number, n.args)) {
        if (process.mixed) wakes = futex_wakes_of(n.number, n.args);
        hold = co_await hold_for_call(worker_.pager, fragment, n.number, n.args);
    }
    if (worker_.find_thread(pid, tid) != &thread) {
        worker_.pager.supply.release(hold);
        co_return;
    }
    spawn(release_after_call(worker_.loop, worker_.pager, hold, thread.host_tid,
                             n.instruction_pointer));
    for (const FutexWakeCall& wake : wakes) send_futex_wake(process, wake);
    if (!process.mixed) thread.waits_at = std::move(words);
    worker_.counts.native++;
    process.notifier->let_it_run(n.id);
}

bool Futexes::is_any_used_at_home(Fragment& fragment, const std::vector<Address>& words) const {
    return std::ranges::any_of(words, [&](Address word) {
        const Mapping* m = fragment.space.find(word);
        return m && m->shared && worker_.pager.shared.is_used_at_home(m->object);
    });
}

bool Futexes::waits_for_home(const RemoteThread& thread) const {
    return is_any_used_at_home(*thread.process->fragment, thread.waits_at);
}

// Others may use the object from now on, at home, so threads have to wait for its words there.
// Threads that wait here are interrupted, call again, and leave.
void Futexes::use_at_home(ObjectId object) {
    worker_.pager.shared.keep_home(object);
    for (const auto& [host_tid, thread] : worker_.by_host_tid) {
        bool waits = thread->here() && !thread->awaited && waits_for_home(*thread);
        if (waits) trace::interrupt(host_tid);
    }
}

Task<void> Futexes::on_futex_wake(Frame frame) {
    { auto guard = co_await worker_.metadata.lock(); }
    auto wake = frame->session().getFutexWoken();
    RemoteProcess* process = worker_.find_process(wake.getPid());
    if (!process || !process->fragment || process->life == RemoteProcess::Life::ending) co_return;
    std::shared_ptr<Fragment> fragment = process->fragment;
    co_await wake_futex_held(worker_.pager, *fragment, FutexNews::told(wake));
}

Task<void> Futexes::on_futex_move(Frame frame) {
    auto move = frame->session().getFutexMove();
    if (move.getDone()) {
        moves_.on_answer(move);
        co_return;
    }
    { auto guard = co_await worker_.metadata.lock(); }
    RemoteProcess* process = worker_.find_process(move.getPid());
    const bool lives = process && process->life != RemoteProcess::Life::ending;
    auto fragment = lives ? process->fragment : nullptr;
    co_await moves_.serve(fragment, frame, worker_.link, directory_node);
}

}  // namespace gpr::worker
