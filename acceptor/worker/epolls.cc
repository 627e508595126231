#include "acceptor/worker/epolls.h"

#include <sys/epoll.h>
#include <sys/syscall.h>

#include <algorithm>

#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/worker.h"

namespace gpr::worker {

Task<void> Epolls::epoll_control(RemoteProcess& process, RemoteThread& thread, Notification n) {
    if (!has_fd_here(process, n.args[2]) || has_fd_here(process, n.args[0])) {
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    if (process.mixed && !process.epolls.contains(static_cast<int>(n.args[0]))) {
        // Any value but 0: tells home that this epoll descriptor now watches a file here.
        constexpr uint64_t whichever = 1;
        int64_t shared = co_await worker_.forwarding.ask_home(process, thread, n, true, nullptr,
                                                              nullptr, 0, whichever);
        if (shared == thread_gone && thread.stub->dead()) co_return;
        if (shared != 0) {
            worker_.forwarding.give_answer(thread, n.id, shared);
            co_return;
        }
    }
    epoll_event event{};
    if (n.args[1] != EPOLL_CTL_DEL) {
        auto bytes = std::as_writable_bytes(std::span(&event, 1));
        bool readable = co_await worker_.pager.memory.read(*process.fragment, {n.args[3]}, bytes);
        if (!readable) {
            process.notifier->reply_error(n.id, EFAULT);
            co_return;
        }
    }
    worker_.counts.fd_owner++;
    std::shared_ptr<Fragment> fragment = process.fragment;
    StubThread& executor = fragment->executor();
    auto guard = co_await executor.lock();
    // A copy, because another thread may close the descriptor meanwhile.
    const int number = static_cast<int>(n.args[0]);
    RemoteProcess::Epoll epoll;
    if (auto known = process.epolls.find(number); known != process.epolls.end()) {
        epoll = known->second;
    }
    std::vector<Call> calls;
    if (!epoll.watched) {
        calls = {Call{SYS_epoll_create1, {EPOLL_CLOEXEC}, 0}};
        co_await executor.run_locked(calls);
        epoll.fd = static_cast<int>(calls[0].result);
        epoll.watched = std::make_shared<Fd>(
            static_cast<int>(syscall(SYS_pidfd_getfd, process.pidfd.get(), epoll.fd, 0)));
        if (!*epoll.watched) {
            process.notifier->reply_error(n.id, ENOMEM);
            co_return;
        }
        process.epolls[number] = epoll;
    }
    executor.scratch().put(0, event);
    calls = {Call{
        SYS_epoll_ctl,
        {static_cast<uint64_t>(epoll.fd), n.args[1], n.args[2], executor.scratch_address().value},
        0}};
    co_await executor.run_locked(calls);
    process.notifier->reply_raw(n.id, calls[0].result);
}

// These numbers of home are about to be closed or to refer to other files.
Task<void> Epolls::forget_epolls(RemoteProcess& process, uint64_t first, uint64_t last) {
    while (!process.epolls.empty()) {
        auto it =
            process.epolls.lower_bound(static_cast<int>(std::min<uint64_t>(first, INT32_MAX)));
        if (it == process.epolls.end() || static_cast<uint64_t>(it->first) > last) co_return;
        auto fd = static_cast<uint64_t>(it->second.fd);
        process.epolls.erase(it);
        std::shared_ptr<Fragment> fragment = process.fragment;
        co_await fragment->executor().call(SYS_close, fd);
    }
}

}  // namespace gpr::worker
