#include "acceptor/worker/polls.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/names.h"
#include "acceptor/worker/wait_here.h"
#include "acceptor/worker/worker.h"

namespace gpr::worker {

namespace {

// More descriptors than a process can have, and fewer than marshalling accepts.
constexpr uint64_t most_polled = 1 << 16;

bool is_epoll_wait(uint32_t number) {
    return number == SYS_epoll_wait || number == SYS_epoll_pwait || number == SYS_epoll_pwait2;
}

Notification call_like(const Notification& n, uint32_t number, std::array<uint64_t, 6> args) {
    Notification other = n;
    other.number = number;
    std::memcpy(other.args, args.data(), sizeof other.args);
    return other;
}

class PollHere final : public WaitHere {
public:
    PollHere(Pager& pager, std::shared_ptr<Fragment> fragment, const Notification& n)
        : pager_(pager), fragment_(std::move(fragment)), call_(n) {}

    void add(size_t index, Fd copy, short events) {
        set_.push_back({copy.get(), events, 0});
        copies_.push_back(std::move(copy));
        indices_.push_back(index);
    }
    std::vector<pollfd> watched() const override { return set_; }
    Task<int64_t> put_ready(int64_t) override {
        ::poll(set_.data(), set_.size(), 0);
        for (pollfd& entry : set_) {
            if (entry.fd < 0 && !copies_.empty()) entry.revents = POLLNVAL;
        }
        if (!co_await put_again()) co_return -EFAULT;
        co_return std::count_if(set_.begin(), set_.end(),
                                [](const pollfd& entry) { return entry.revents != 0; });
    }
    Task<bool> put_again() override {
        for (size_t i = 0; i < set_.size(); i++) {
            uint64_t at = call_.args[0] + indices_[i] * sizeof(pollfd) + offsetof(pollfd, revents);
            auto revents = std::as_bytes(std::span(&set_[i].revents, 1));
            if (!co_await pager_.memory.write(*fragment_, {at}, revents)) co_return false;
        }
        co_return true;
    }
    void let_go() override {
        WaitHere::let_go();
        copies_.clear();
        for (pollfd& entry : set_) entry = {-1, 0, 0};
    }
    Notification without_wait(int64_t) const override {
        return call_like(call_, SYS_poll, {call_.args[0], call_.args[1], 0});
    }

private:
    Pager& pager_;
    std::shared_ptr<Fragment> fragment_;
    Notification call_;
    std::vector<pollfd> set_;  // with our own numbers; -1: not open
    std::vector<Fd> copies_;
    std::vector<size_t> indices_;  // indexes in the program's array
};

class EpollHere final : public WaitHere {
public:
    EpollHere(Pager& pager, std::shared_ptr<Fragment> fragment, const Notification& n,
              std::shared_ptr<Fd> epoll)
        : pager_(pager), fragment_(std::move(fragment)), call_(n), epoll_(std::move(epoll)) {}

    std::vector<pollfd> watched() const override { return {{epoll_->get(), POLLIN, 0}}; }
    Task<int64_t> put_ready(int64_t before) override {
        int64_t room = static_cast<int>(call_.args[2]) - before;
        if (room <= 0) co_return 0;
        std::vector<epoll_event> events(std::min<size_t>(static_cast<size_t>(room), 256));
        int got = epoll_wait(epoll_->get(), events.data(), static_cast<int>(events.size()), 0);
        if (got <= 0) co_return 0;
        events.resize(static_cast<size_t>(got));
        Address to{call_.args[1] + static_cast<uint64_t>(before) * sizeof(epoll_event)};
        bool written =
            co_await pager_.memory.write(*fragment_, to, std::as_bytes(std::span(events)));
        co_return written ? got : -EFAULT;
    }
    Notification without_wait(int64_t ours) const override {
        auto taken = static_cast<uint64_t>(ours);
        return call_like(
            call_, SYS_epoll_wait,
            {call_.args[0], call_.args[1] + taken * sizeof(epoll_event), call_.args[2] - taken, 0});
    }

private:
    Pager& pager_;
    std::shared_ptr<Fragment> fragment_;
    Notification call_;
    std::shared_ptr<Fd> epoll_;
};

}  // namespace

// nullptr if everything that the call waits for is at one node.
Task<std::unique_ptr<WaitHere>> Polls::wait_here(RemoteProcess& process, Notification n,
                                                 bool& all_ours) {
    all_ours = false;
    if (process.fd_base == 0) co_return nullptr;
    if (is_epoll_wait(n.number)) {
        auto it = process.epolls.find(static_cast<int>(n.args[0]));
        if (it == process.epolls.end() || static_cast<int>(n.args[2]) <= 0) co_return nullptr;
        co_return std::make_unique<EpollHere>(worker_.pager, process.fragment, n,
                                              it->second.watched);
    }
    uint64_t count = n.args[1];
    if (count == 0 || count > most_polled) co_return nullptr;
    std::vector<pollfd> set(count);
    bool readable = co_await worker_.pager.memory.read(*process.fragment, {n.args[0]},
                                                       std::as_writable_bytes(std::span(set)));
    if (!readable) co_return nullptr;
    auto is_ours = [&](const pollfd& entry) {
        return has_fd_here(process, static_cast<uint32_t>(entry.fd));
    };
    if (std::none_of(set.begin(), set.end(), is_ours)) co_return nullptr;
    all_ours = std::all_of(set.begin(), set.end(),
                           [&](const pollfd& entry) { return entry.fd < 0 || is_ours(entry); });
    // Signals that a temporary mask lets through arrive at home.
    bool masked = n.number == SYS_ppoll && n.args[3] != 0;
    all_ours = all_ours && !masked;
    if (all_ours) co_return nullptr;
    auto wait = std::make_unique<PollHere>(worker_.pager, process.fragment, n);
    for (size_t i = 0; i < set.size(); i++) {
        if (!is_ours(set[i])) continue;
        Fd copy(static_cast<int>(syscall(SYS_pidfd_getfd, process.pidfd.get(), set[i].fd, 0)));
        wait->add(i, std::move(copy), set[i].events);
    }
    co_return wait;
}

Task<void> Polls::wait_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    if (!process.names.empty()) co_await worker_.names.bring_names(process);
    bool all_ours = false;
    auto here = co_await wait_here(process, n, all_ours);
    if (all_ours) {
        process.notifier->let_it_run(n.id);
    } else if (!here) {
        co_await worker_.forwarding.forward(process, thread, n);
    } else {
        co_await worker_.forwarding.forward(process, thread, n, here.get());
    }
}

// Like ask_home(), for a call that waits for something here as well.
Task<int64_t> Polls::ask_both(RemoteProcess& process, RemoteThread& thread, Notification n,
                              WaitHere& here) {
    const auto waits = process.waits_here;  // the process may be gone at the end
    waits->insert(&here);
    int64_t result = co_await wait_for_both(process, thread, n, here);
    waits->erase(&here);
    co_return result;
}

Task<int64_t> Polls::wait_for_both(RemoteProcess& process, RemoteThread& thread, Notification n,
                                   WaitHere& here) {
    for (;;) {
        int64_t ours = co_await here.put_ready(0);
        if (ours < 0) co_return ours;
        if (ours > 0) {
            int64_t others = co_await worker_.forwarding.ask_home(process, thread,
                                                                  here.without_wait(ours), true);
            if (others == thread_gone && thread.stub->dead()) co_return others;
            if (!co_await here.put_again()) co_return -EFAULT;
            co_return std::max<int64_t>(others, 0) + ours;
        }
        uint32_t wait = worker_.forwarding.next_wait();
        bool ended = false;
        for (const pollfd& p : here.watched()) {
            if (p.fd < 0) continue;
            auto events = static_cast<uint32_t>(p.events | POLLERR | POLLHUP);
            here.watches.push_back(worker_.loop.watch(p.fd, events, [&, this](uint32_t) {
                // A descriptor that is ready would be reported repeatedly until home has answered.
                here.watches.clear();
                if (!std::exchange(ended, true)) worker_.forwarding.interrupt_at_home(thread, wait);
            }));
        }
        int64_t result =
            co_await worker_.forwarding.ask_home(process, thread, n, true, nullptr, nullptr, wait);
        here.watches.clear();
        if (result == thread_gone && thread.stub->dead()) co_return result;
        bool in_vain = ended && !thread.answer_signal && result == -EINTR;
        if (result < 0 && !in_vain) co_return result;
        ours = co_await here.put_ready(std::max<int64_t>(result, 0));
        if (ours < 0) co_return ours;
        if (ours > 0 || !in_vain) co_return std::max<int64_t>(result, 0) + ours;
        // Another thread has taken it; wait again.
    }
}

}  // namespace gpr::worker
