// Futexes of a session as home sees them: what is waked here and waited for elsewhere, and back.
#include <algorithm>

#include "monitor/home_session.h"

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
    auto wake = futex_wake_of(n.number, n.args);
    if (!wake || is_shared_word(*process.fragment, {wake->address})) return;
    auto is_there = [](const auto& entry) { return entry.second->remote; };
    if (std::any_of(process.threads.begin(), process.threads.end(), is_there)) {
        send_futex_wake(process, *wake);
    }
}

void HomeSession::send_futex_wake(HomeProcess& process, const FutexWakeCall& wake) {
    if (process.started_remotely && futex_news_.tell(process.pid, wake)) stats_.futex_wakes++;
}

Task<void> HomeSession::on_futex_wake(Frame frame) {
    { auto guard = co_await metadata_.lock(); }
    auto wake = frame->session().getFutexWake();
    HomeProcess* process = find_process(wake.getPid());
    if (!process || !process->fragment) co_return;
    std::shared_ptr<Fragment> fragment = process->fragment;
    co_await wake_futex(*fragment, FutexNews::told(wake));
}

}  // namespace gpr
