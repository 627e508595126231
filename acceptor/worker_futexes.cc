// Futexes of a session at the acceptor: what is waked here and waited for at home, and back.
#include <spdlog/spdlog.h>

#include <utility>

#include "acceptor/worker.h"

namespace gpr {

// Once, when it is first of use. What this host does not allow is done with the filter instead.
void Worker::watch_futexes() {
    if (std::exchange(watch_tried_, true)) return;
    auto watch = CallWatch::load();
    if (!watch) {
        spdlog::info("calls that wake futexes are stopped: {}", watch.error().message());
        return;
    }
    futex_news_.use(std::move(*watch), [this](pid_t pid, pid_t tid, const FutexWakeCall& wake) {
        if (tid != 0) pager_.on_past_progress(tid);
        if (RemoteProcess* process = find_process(pid)) send_futex_wake(*process, wake);
    });
}

void Worker::send_futex_wake(RemoteProcess& process, const FutexWakeCall& wake) {
    futex_news_.tell(process.pid, wake);
}

Task<void> Worker::on_futex_wake(Frame frame) {
    { auto guard = co_await metadata_.lock(); }
    auto wake = frame->session().getFutexWake();
    RemoteProcess* process = find_process(wake.getPid());
    if (!process || !process->fragment || process->ending) co_return;
    std::shared_ptr<Fragment> fragment = process->fragment;
    co_await wake_futex(*fragment, FutexNews::told(wake));
}

}  // namespace gpr
