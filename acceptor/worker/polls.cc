// Waiting for descriptors of both nodes at once. The thread's shadow waits at home for those of
// home, and we watch those that are here; whatever is ready first ends both waits.
//
// An epoll descriptor is home's. What it is to watch here is put into another one, which is here
// and which the program never sees; so the kernel here knows of files that are closed, of edges and
// of what is for once only.

#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "acceptor/worker/worker.h"
#include "base/log.h"

namespace gpr {

namespace {

// More than any process can have open, and less than what marshalling takes.
constexpr uint64_t most_polled = 1 << 16;

bool is_epoll_wait(uint32_t number) {
    return number == SYS_epoll_wait || number == SYS_epoll_pwait || number == SYS_epoll_pwait2;
}

}  // namespace

// The part of a wait that is ours. Its result and that of home are one result for the program.
class Worker::WaitHere {
public:
    virtual ~WaitHere() = default;
    // What becomes readable, or has these events, when there is something to look at.
    virtual std::vector<pollfd> watched() const = 0;
    // Puts what is ready now into the program's memory, behind `before` entries of home, and says
    // how many that is, or an error.
    virtual Task<int64_t> collect(int64_t before) = 0;
    // The same call without waiting, for what is left behind as many entries of ours.
    virtual Notification without_wait(int64_t ours) const = 0;
    // Puts what was collected last there again, if home's part has been written over it.
    virtual Task<bool> put_again() { co_return true; }
};

namespace {

Notification call_like(const Notification& n, uint32_t number, std::array<uint64_t, 6> args) {
    Notification other = n;
    other.number = number;
    std::memcpy(other.args, args.data(), sizeof other.args);
    return other;
}

}  // namespace

class Worker::PollHere final : public Worker::WaitHere {
public:
    PollHere(Pager& pager, std::shared_ptr<Fragment> fragment, const Notification& n)
        : pager_(pager), fragment_(std::move(fragment)), call_(n) {}

    void add(size_t index, Fd copy, short events) {
        set_.push_back({copy.get(), events, 0});
        copies_.push_back(std::move(copy));
        indices_.push_back(index);
    }
    std::vector<pollfd> watched() const override { return set_; }
    Task<int64_t> collect(int64_t) override {
        ::poll(set_.data(), set_.size(), 0);
        for (pollfd& entry : set_) {
            if (entry.fd < 0) entry.revents = POLLNVAL;
        }
        if (!co_await put_again()) co_return -EFAULT;
        co_return std::count_if(set_.begin(), set_.end(),
                                [](const pollfd& entry) { return entry.revents != 0; });
    }
    Task<bool> put_again() override {
        for (size_t i = 0; i < set_.size(); i++) {
            uint64_t at = call_.args[0] + indices_[i] * sizeof(pollfd) + offsetof(pollfd, revents);
            auto revents = std::as_bytes(std::span(&set_[i].revents, 1));
            if (!co_await pager_.write(*fragment_, {at}, revents)) co_return false;
        }
        co_return true;
    }
    Notification without_wait(int64_t) const override {
        return call_like(call_, SYS_poll, {call_.args[0], call_.args[1], 0});
    }

private:
    Pager& pager_;
    std::shared_ptr<Fragment> fragment_;
    Notification call_;
    std::vector<pollfd> set_;  // in our own numbers; -1: it is not open
    std::vector<Fd> copies_;
    std::vector<size_t> indices_;  // of the program's array
};

class Worker::EpollHere final : public Worker::WaitHere {
public:
    EpollHere(Pager& pager, std::shared_ptr<Fragment> fragment, const Notification& n,
              std::shared_ptr<Fd> epoll)
        : pager_(pager), fragment_(std::move(fragment)), call_(n), epoll_(std::move(epoll)) {}

    std::vector<pollfd> watched() const override { return {{epoll_->get(), POLLIN, 0}}; }
    Task<int64_t> collect(int64_t before) override {
        int64_t room = static_cast<int>(call_.args[2]) - before;
        if (room <= 0) co_return 0;
        std::vector<epoll_event> events(std::min<size_t>(static_cast<size_t>(room), 256));
        int got = epoll_wait(epoll_->get(), events.data(), static_cast<int>(events.size()), 0);
        if (got <= 0) co_return 0;
        events.resize(static_cast<size_t>(got));
        Address to{call_.args[1] + static_cast<uint64_t>(before) * sizeof(epoll_event)};
        bool written = co_await pager_.write(*fragment_, to, std::as_bytes(std::span(events)));
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

// Nothing: all that the call waits for is at one node.
Task<std::unique_ptr<Worker::WaitHere>> Worker::wait_here(RemoteProcess& process, Notification n,
                                                          bool& all_ours) {
    all_ours = false;
    if (process.fd_base == 0) co_return nullptr;
    if (is_epoll_wait(n.number)) {
        auto it = process.epolls.find(static_cast<int>(n.args[0]));
        if (it == process.epolls.end() || static_cast<int>(n.args[2]) <= 0) co_return nullptr;
        co_return std::make_unique<EpollHere>(pager_, process.fragment, n, it->second.watched);
    }
    uint64_t count = n.args[1];
    if (count == 0 || count > most_polled) co_return nullptr;
    std::vector<pollfd> set(count);
    bool readable = co_await pager_.read(*process.fragment, {n.args[0]},
                                         std::as_writable_bytes(std::span(set)));
    if (!readable) co_return nullptr;
    auto is_ours = [&](const pollfd& entry) {
        return has_fd_here(process, static_cast<uint32_t>(entry.fd));
    };
    if (std::none_of(set.begin(), set.end(), is_ours)) co_return nullptr;
    all_ours = std::all_of(set.begin(), set.end(),
                           [&](const pollfd& entry) { return entry.fd < 0 || is_ours(entry); });
    if (all_ours) co_return nullptr;
    auto wait = std::make_unique<PollHere>(pager_, process.fragment, n);
    for (size_t i = 0; i < set.size(); i++) {
        if (!is_ours(set[i])) continue;
        Fd copy(static_cast<int>(syscall(SYS_pidfd_getfd, process.pidfd.get(), set[i].fd, 0)));
        wait->add(i, std::move(copy), set[i].events);
    }
    co_return wait;
}

Task<void> Worker::wait_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    if (!process.names.empty()) co_await bring_names(process);
    bool all_ours = false;
    auto here = co_await wait_here(process, n, all_ours);
    if (all_ours) {
        process.notifier->let_it_run(n.id);
    } else if (!here) {
        co_await forward(process, thread, n);
    } else {
        co_await forward(process, thread, n, here.get());
    }
}

// What ask_home gives for a call that waits for something here as well.
Task<int64_t> Worker::ask_both(RemoteProcess& process, RemoteThread& thread, Notification n,
                               WaitHere& here) {
    for (;;) {
        int64_t ours = co_await here.collect(0);
        if (ours < 0) co_return ours;
        if (ours > 0) {
            int64_t others = co_await ask_home(process, thread, here.without_wait(ours), true);
            if (others == thread_gone) co_return others;
            if (!co_await here.put_again()) co_return -EFAULT;
            co_return std::max<int64_t>(others, 0) + ours;
        }
        if (++last_wait_ == 0) ++last_wait_;
        uint32_t wait = last_wait_;
        bool ended = false;
        std::vector<Watch> watches;
        for (const pollfd& p : here.watched()) {
            if (p.fd < 0) continue;
            auto events = static_cast<uint32_t>(p.events | POLLERR | POLLHUP);
            watches.push_back(loop_.watch(p.fd, events, [&, this](uint32_t) {
                // What is ready would be told again and again until home has answered.
                watches.clear();
                if (!std::exchange(ended, true)) interrupt_at_home(thread, wait);
            }));
        }
        int64_t result = co_await ask_home(process, thread, n, true, nullptr, nullptr, wait);
        watches.clear();
        if (result == thread_gone) co_return result;
        bool in_vain = ended && !thread.answer_signal && result == -EINTR;
        if (result < 0 && !in_vain) co_return result;
        ours = co_await here.collect(std::max<int64_t>(result, 0));
        if (ours < 0) co_return ours;
        if (ours > 0 || !in_vain) co_return std::max<int64_t>(result, 0) + ours;
        // Somebody else was faster; what it waits for is to come yet.
    }
}

// The call that its shadow waits in is to end.
void Worker::interrupt_at_home(const RemoteThread& thread, uint32_t wait) {
    FrameBuilder frame;
    auto interrupt = frame.session().initInterrupt();
    interrupt.setPid(thread.process->pid);
    interrupt.setTid(thread.tid);
    interrupt.setWait(wait);
    link_.send(frame, gpr::Priority::urgent);
}

// What is ours is not home's to look at.
void Worker::hide_own_fds(const RemoteProcess& process, MarshalledCall& call) {
    bool polls = call.number == SYS_poll || call.number == SYS_ppoll;
    if (!polls || process.fd_base == 0 || call.pieces.empty()) return;
    size_t bytes = std::min<size_t>(call.pieces[0].in_length, call.in_bytes.size());
    for (size_t at = 0; at + sizeof(pollfd) <= bytes; at += sizeof(pollfd)) {
        pollfd entry;
        std::memcpy(&entry, call.in_bytes.data() + at, sizeof entry);
        if (!has_fd_here(process, static_cast<uint32_t>(entry.fd))) continue;
        entry.fd = -1;
        std::memcpy(call.in_bytes.data() + at, &entry, sizeof entry);
    }
}

Task<void> Worker::epoll_control(RemoteProcess& process, RemoteThread& thread, Notification n) {
    if (!has_fd_here(process, n.args[2]) || has_fd_here(process, n.args[0])) {
        co_await forward(process, thread, n);
        co_return;
    }
    if (process.mixed && !process.epolls.contains(static_cast<int>(n.args[0]))) {
        constexpr uint64_t whichever = 1;  // its threads are to wait for it here, from now on
        int64_t shared =
            co_await ask_home(process, thread, n, true, nullptr, nullptr, 0, whichever);
        if (shared == thread_gone && thread.stub->dead()) co_return;
        if (shared != 0) {
            give_answer(thread, n.id, shared);
            co_return;
        }
    }
    epoll_event event{};
    if (n.args[1] != EPOLL_CTL_DEL) {
        auto bytes = std::as_writable_bytes(std::span(&event, 1));
        bool readable = co_await pager_.read(*process.fragment, {n.args[3]}, bytes);
        if (!readable) {
            process.notifier->reply_error(n.id, EFAULT);
            co_return;
        }
    }
    calls_fd_owner_++;
    std::shared_ptr<Fragment> fragment = process.fragment;
    StubThread& executor = fragment->executor();
    auto guard = co_await executor.lock();
    // A copy: another thread may close the descriptor meanwhile.
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

// These numbers of home mean something else from now on.
Task<void> Worker::forget_epolls(RemoteProcess& process, uint64_t first, uint64_t last) {
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

}  // namespace gpr
