// Futexes of a session as home sees them: what is waked here and waited for elsewhere, and back.
#include <algorithm>
#include <climits>
#include <utility>

#include "monitor/home/session.h"

namespace gpr {

void HomeSession::watch_futexes(std::unique_ptr<CallWatch> watch) {
    futex_news_.use(std::move(watch), [this](pid_t pid, pid_t tid, const FutexWakeCall& wake) {
        if (tid != 0) pager_.on_past_progress(tid);
        if (HomeProcess* process = find_process(pid)) send_futex_wake(*process, wake);
    });
}

// Who waits on another node for what is waked here. It may wake one too many: futex users must
// look at their word again in any case (futex(2), "spurious wake-up").
void HomeSession::tell_futex_wake(HomeProcess& process, const Notification& n) {
    if (futex_news_.tells(n.number, n.args)) return;
    for (const FutexWakeCall& wake : futex_wakes_of(n.number, n.args)) tell_wake(process, wake);
}

void HomeSession::tell_wake(HomeProcess& process, const FutexWakeCall& wake) {
    if (is_shared_word(*process.fragment, {wake.address})) return;
    auto is_there = [](const auto& entry) { return entry.second->remote; };
    if (std::any_of(process.threads.begin(), process.threads.end(), is_there)) {
        send_futex_wake(process, wake);
    }
}

void HomeSession::futex_call(HomeProcess& process, HomeThread& thread, const Notification& n) {
    if (n.number == number_futex_requeue || !words_changed_by(n.number, n.args).empty()) {
        spawn(futex_call_in_memory(process, thread, n));
        return;
    }
    tell_futex_wake(process, n);
    notifier_->let_it_run(n.id);
}

// One that needs memory before it is made, or to know what it wakes.
Task<void> HomeSession::futex_call_in_memory(HomeProcess& process, HomeThread& thread,
                                             Notification n) {
    pid_t pid = process.pid, tid = thread.tid;
    std::shared_ptr<Fragment> fragment = process.fragment;
    uint64_t hold = 0;
    RequeuedWords words;
    auto changed = words_changed_by(n.number, n.args);
    if (n.number == number_futex_requeue) {
        Address at{n.args[0]};
        auto bytes = std::as_writable_bytes(std::span(&words, 1));
        bool read = co_await pager_.read(*fragment, at, bytes);
        if (!read) words = {};
    } else if (can_be_changed(*fragment, changed)) {
        hold = co_await pager_.hold(*fragment, std::move(changed), Access::write);
    }
    HomeThread* still = find_thread(pid, tid);
    if (still && still->process->fragment != fragment) still = nullptr;  // it executes a program
    if (still && n.number == number_futex_requeue) {
        futex_news_.moves_to(words.to.address);
        tell_wake(*still->process, words.wake());
    } else if (still && !is_pi_call(n.number, n.args)) {  // those wait here, all of them
        tell_futex_wake(*still->process, n);
    }
    if (still) notifier_->let_it_run(n.id);
    if (hold != 0) loop_.after(call_made_in, [this, hold] { pager_.release(hold); });
}

void HomeSession::end_of_guest(HomeThread& thread) {
    HomeProcess* owner = owner_of_memory(*thread.process);
    uint64_t at = std::exchange(thread.clear_tid, 0);
    if (owner && at != 0) spawn(clear_tid_of_guest(owner->pid, {at}, thread.tid));
}

// The child of a vfork, or of a clone that shares memory, has ended or executed a program here,
// where the kernel skips a word that is not in memory.
Task<void> HomeSession::clear_tid_of_guest(pid_t owner, Address at, pid_t tid) {
    HomeProcess* process = find_process(owner);
    if (!process || !process->fragment) co_return;
    std::shared_ptr<Fragment> fragment = process->fragment;
    pid_t word = 0;
    bool read = co_await pager_.read(*fragment, at, std::as_writable_bytes(std::span(&word, 1)));
    if (read && word == tid) {
        word = 0;
        co_await pager_.write(*fragment, at, std::as_bytes(std::span(&word, 1)));
    }
    FutexWakeCall wake{at.value, INT_MAX, 0xffffffff, true};
    process = find_process(owner);
    if (process) send_futex_wake(*process, wake);
    co_await wake_futex_held(pager_, *fragment, wake);
}

void HomeSession::send_futex_wake(HomeProcess& process, const FutexWakeCall& wake) {
    if (process.started_remotely && futex_news_.tell(process.pid, wake)) stats_.futex_wakes++;
}

Task<void> HomeSession::on_futex_wake(Frame frame) {
    { auto guard = co_await metadata_.lock(); }
    auto wake = frame->session().getFutexWoken();
    HomeProcess* process = find_process(wake.getPid());
    if (!process || !process->fragment) co_return;
    std::shared_ptr<Fragment> fragment = process->fragment;
    co_await wake_futex_held(pager_, *fragment, FutexNews::told(wake));
}

}  // namespace gpr
