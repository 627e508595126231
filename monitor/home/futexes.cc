#include "monitor/home/futexes.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "monitor/home/home.h"

namespace gpr::home {

void Futexes::watch_futexes(std::unique_ptr<CallWatch> watch) {
    home_.acceptor.futex_news.use(std::move(watch),
                                  [this](pid_t pid, pid_t tid, const FutexWakeCall& wake) {
                                      if (tid != 0) home_.pager.on_past_progress(tid);
                                      if (HomeProcess* process = home_.find_process(pid)) {
                                          send_futex_wake(*process, wake);
                                      }
                                  });
}

// Who waits on another node for what is waked here. It may wake one too many: futex users must
// look at their word again in any case (futex(2), "spurious wake-up").
void Futexes::tell_futex_wake(HomeProcess& process, const Notification& n) {
    if (home_.acceptor.futex_news.tells(n.number, n.args)) return;
    for (const FutexWakeCall& wake : futex_wakes_of(n.number, n.args)) tell_wake(process, wake);
}

void Futexes::tell_wake(HomeProcess& process, const FutexWakeCall& wake) {
    if (is_shared_word(*process.fragment, {wake.address})) return;
    auto is_there = [](const auto& entry) { return entry.second->remote; };
    if (std::any_of(process.threads.begin(), process.threads.end(), is_there)) {
        send_futex_wake(process, wake);
    }
}

void Futexes::futex_call(HomeProcess& process, HomeThread& thread, const Notification& n) {
    if (n.number == number_futex_requeue || !words_changed_by(n.number, n.args).empty()) {
        spawn(futex_call_in_memory(process, thread, n));
        return;
    }
    tell_futex_wake(process, n);
    home_.notifier->let_it_run(n.id);
}

// One that needs memory before it is made, or to know what it wakes.
Task<void> Futexes::futex_call_in_memory(HomeProcess& process, HomeThread& thread, Notification n) {
    pid_t pid = process.pid, tid = thread.tid;
    std::shared_ptr<Fragment> fragment = process.fragment;
    uint64_t hold = 0;
    RequeuedWords words;
    auto changed = words_changed_by(n.number, n.args);
    if (n.number == number_futex_requeue) {
        Address at{n.args[0]};
        auto bytes = std::as_writable_bytes(std::span(&words, 1));
        bool read = co_await home_.pager.memory.read(*fragment, at, bytes);
        if (!read) words = {};
    } else if (can_be_changed(*fragment, changed)) {
        hold = co_await home_.pager.supply.hold(*fragment, std::move(changed), Access::write);
    }
    HomeThread* still = home_.find_thread(pid, tid);
    if (still && still->process->fragment != fragment) still = nullptr;  // it executes a program
    if (still && n.number == number_futex_requeue) {
        home_.acceptor.futex_news.moves_to(words.to.address);
        tell_wake(*still->process, words.wake());
    } else if (still && !is_pi_call(n.number, n.args)) {  // those wait here, all of them
        tell_futex_wake(*still->process, n);
    }
    if (still) home_.notifier->let_it_run(n.id);
    if (hold != 0)
        home_.loop.after(call_made_in, [this, hold] { home_.pager.supply.release(hold); });
}

void Futexes::send_futex_wake(HomeProcess& process, const FutexWakeCall& wake) {
    if (process.started_remotely && home_.acceptor.futex_news.tell(process.pid, wake)) {
        home_.stats.futex_wakes++;
    }
}

Task<void> Futexes::on_futex_wake(Frame frame) {
    { auto guard = co_await home_.metadata.lock(); }
    auto wake = frame->session().getFutexWoken();
    HomeProcess* process = home_.find_process(wake.getPid());
    if (!process || !process->fragment) co_return;
    std::shared_ptr<Fragment> fragment = process->fragment;
    co_await wake_futex_held(home_.pager, *fragment, FutexNews::told(wake));
}

}  // namespace gpr::home
