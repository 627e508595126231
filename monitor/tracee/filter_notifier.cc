#include "monitor/tracee/filter_notifier.h"

#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/uapi/seccomp.h"

namespace gpr {

namespace {
constexpr int most_at_once = 64;
}  // namespace

void FilterNotifier::listen(std::shared_ptr<Fd> listener) {
    const int fd = listener->get();
    // Linux 6.6: caller and supervisor, of whom one runs at a time, then stay on one processor.
    ioctl(fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
    auto watch = loop_.watch_near(fd, POLLIN, [this, fd](uint32_t revents) {
        if (revents & POLLIN) {
            poll(fd);
        } else {
            hang_up(fd);  // no process has the filter any more
        }
    });
    listeners_.push_back({std::move(listener), std::move(watch)});
}

void FilterNotifier::hang_up(int listener) {
    auto at = std::ranges::find_if(
        listeners_, [listener](const Listener& each) { return each.fd->get() == listener; });
    if (at == listeners_.end()) return;
    // Destroyed later, because we may be in a callback of its watch.
    auto gone = std::make_shared<Listener>(std::move(*at));
    listeners_.erase(at);
    std::erase_if(callers_, [&](const auto& caller) {
        if (caller.second.listener != listener) return false;
        waiting_.erase(caller.second.tid);
        return true;
    });
    gone->watch.reset();
    loop_.after(std::chrono::milliseconds(0), [gone] {});
}

void FilterNotifier::poll() {
    std::vector<int> all;
    for (const Listener& each : listeners_) all.push_back(each.fd->get());
    for (const int listener : all) poll(listener);
}

void FilterNotifier::poll(int listener) {
    // NOTIF_RECV blocks if the notification has vanished since, so look right before each. The
    // limit is for threads that do nothing but call: the end of the session must be heard, too.
    for (int taken = 0; taken < most_at_once; taken++) {
        pollfd p{listener, POLLIN, 0};
        if (::poll(&p, 1, 0) != 1 || !(p.revents & POLLIN)) return;
        seccomp_notif n;
        std::memset(&n, 0, sizeof n);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n) != 0) return;
        Notification out{n.id,
                         static_cast<pid_t>(n.pid),
                         static_cast<uint32_t>(n.data.nr),
                         {},
                         n.data.instruction_pointer};
        std::memcpy(out.args, n.data.args, sizeof out.args);
        on_thread_gone(out.tid);  // the caller's earlier call was interrupted and is made again
        waiting_[out.tid] = out.id;
        callers_[out.id] = {out.tid, listener};
        handler_(out);
    }
}

void FilterNotifier::on_thread_gone(pid_t tid) {
    auto it = waiting_.find(tid);
    if (it == waiting_.end()) return;
    callers_.erase(it->second);
    waiting_.erase(it);
}

int FilterNotifier::listener_of(uint64_t id) const {
    auto it = callers_.find(id);
    if (it != callers_.end()) return it->second.listener;
    for (const Listener& each : listeners_) {
        if (ioctl(each.fd->get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0) return each.fd->get();
    }
    return -1;
}

int FilterNotifier::answered(uint64_t id) {
    const int listener = listener_of(id);
    if (auto it = callers_.find(id); it != callers_.end()) {
        waiting_.erase(it->second.tid);
        callers_.erase(it);
    }
    return listener;
}

bool FilterNotifier::send(uint64_t id, int64_t value, int error, uint32_t flags) {
    seccomp_notif_resp r{id, value, error, flags};
    return ioctl(answered(id), SECCOMP_IOCTL_NOTIF_SEND, &r) == 0;
}

bool FilterNotifier::reply_raw(uint64_t id, int64_t result) {
    bool is_error = result < 0 && result >= -4095;
    return is_error ? send(id, 0, static_cast<int>(result), 0) : send(id, result, 0, 0);
}
bool FilterNotifier::let_it_run(uint64_t id) {
    return send(id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}

bool FilterNotifier::reply_with_fd(uint64_t id, int fd, int number) {
    seccomp_notif_addfd add{};
    add.id = id;
    add.flags = SECCOMP_ADDFD_FLAG_SEND;
    if (number != 0) add.flags |= SECCOMP_ADDFD_FLAG_SETFD;
    add.srcfd = static_cast<uint32_t>(fd);
    add.newfd = static_cast<uint32_t>(number);
    add.newfd_flags = 02000000;  // O_CLOEXEC
    return ioctl(answered(id), SECCOMP_IOCTL_NOTIF_ADDFD, &add) >= 0;
}

int64_t FilterNotifier::put_fd(uint64_t id, int fd, int number, bool closes_on_exec) const {
    seccomp_notif_addfd add{};
    add.id = id;
    add.flags = SECCOMP_ADDFD_FLAG_SETFD;
    add.srcfd = static_cast<uint32_t>(fd);
    add.newfd = static_cast<uint32_t>(number);
    add.newfd_flags = closes_on_exec ? 02000000 : 0;  // O_CLOEXEC
    int put = ioctl(listener_of(id), SECCOMP_IOCTL_NOTIF_ADDFD, &add);
    return put < 0 ? -errno : put;
}

bool FilterNotifier::still_valid(uint64_t id) const {
    return ioctl(listener_of(id), SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

}  // namespace gpr
