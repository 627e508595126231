#include "acceptor/worker/call_rules.h"

#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>

#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/worker.h"
#include "monitor/node/passed_fds.h"
#include "monitor/rules/call_rules.h"

namespace gpr::worker {

namespace {

constexpr uint64_t most_messages = 1024;          // UIO_MAXIOV: the kernel's limit
constexpr uint64_t most_control_bytes = 1 << 16;  // more than net.core.optmem_max

template <class T>
std::span<std::byte> bytes_of(std::vector<T>& list) {
    return std::as_writable_bytes(std::span(list));
}

}  // namespace

bool CallRules::made_by_rule(const RemoteProcess& process, const Notification& n) {
    auto call = find_remote_call(rules_, n.number, n.args[0]);
    if (!call) return false;
    used_.insert(static_cast<uint32_t>(*call));
    worker_.counts.by_rule++;
    process.notifier->let_it_run(n.id);
    return true;
}

// Home's descriptors do not exist here, so a message sent from here cannot pass them.
Task<void> CallRules::send_message_call(RemoteProcess& process, RemoteThread& thread,
                                        Notification n) {
    if (!has_fd_here(process, n.args[0])) {
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    if (int error = co_await sends_foreign_fds(process, n); error != 0) {
        process.notifier->reply_error(n.id, error);
        co_return;
    }
    process.notifier->let_it_run(n.id);
}

// EBADF if a message passes descriptors of home, else 0. What cannot be read is left to the kernel
// to report.
Task<int> CallRules::sends_foreign_fds(RemoteProcess& process, Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    bool several = n.number == SYS_sendmmsg;
    std::vector<mmsghdr> messages(several ? std::min<uint64_t>(n.args[2], most_messages) : 1);
    auto headers = bytes_of(messages);
    if (!several) headers = headers.first(sizeof(msghdr));
    if (headers.empty() || !co_await worker_.pager.memory.read(*fragment, {n.args[1]}, headers))
        co_return 0;
    for (const mmsghdr& message : messages) {
        const msghdr& header = message.msg_hdr;
        if (header.msg_control == nullptr || header.msg_controllen < CMSG_LEN(sizeof(int)))
            continue;
        std::vector<std::byte> control(
            std::min<uint64_t>(header.msg_controllen, most_control_bytes));
        Address at{reinterpret_cast<uint64_t>(header.msg_control)};
        if (!co_await worker_.pager.memory.read(*fragment, at, control)) continue;
        for (int fd : passed_fds(control)) {
            if (!has_fd_here(process, static_cast<uint32_t>(fd))) co_return EBADF;
        }
    }
    co_return 0;
}

}  // namespace gpr::worker
