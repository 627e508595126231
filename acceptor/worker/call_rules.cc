#include "acceptor/worker/call_rules.h"

#include <linux/if_xdp.h>
#include <linux/io_uring.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>

#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "monitor/node/passed_fds.h"
#include "monitor/node/refusals.h"
#include "monitor/rules/call_rules.h"

namespace gpr::worker {

namespace {

// After this time a call has pinned its pages, or has failed.
constexpr std::chrono::milliseconds pinned_in{20};
constexpr uint64_t most_messages = 1024;          // UIO_MAXIOV: the kernel's limit
constexpr uint64_t most_control_bytes = 1 << 16;  // more than net.core.optmem_max
constexpr uint64_t most_buffers = 1 << 14;        // IORING_MAX_REG_BUFFERS
constexpr uint64_t most_held_bytes = 4ULL << 30;  // the lengths are whatever the program says

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

// Memory to be pinned for a device must be present: while the kernel pins pages under the mmap lock
// it does not wait for missing ones, but fails with EFAULT.
Task<void> CallRules::pin_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    if (!has_fd_here(process, n.args[0])) {
        bool registers = n.number == SYS_io_uring_register && registers_buffers(n.args[1]);
        if (registers) {  // home's kernel would pin what it has now
            process.notifier->reply_error(n.id, EOPNOTSUPP);
            co_return;
        }
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    std::shared_ptr<Fragment> fragment = process.fragment;
    std::vector<Range> ranges = co_await ranges_to_pin(process, n);
    for (Range range : ranges) {
        spdlog::debug("tid {}: {:#x}+{:#x} is to be pinned", thread.tid, range.begin.value,
                      range.size());
        co_await worker_.pager.supply.make_resident(*fragment, range, Access::write);
    }
    uint64_t held = co_await worker_.pager.supply.hold(*fragment, std::move(ranges), Access::write);
    worker_.counts.fd_owner++;
    process.notifier->let_it_run(n.id);
    worker_.loop.after(pinned_in, [this, held] { worker_.pager.supply.release(held); });
}

Task<std::vector<Range>> CallRules::ranges_to_pin(RemoteProcess& process, Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    std::vector<iovec> buffers;
    uint64_t list = 0, count = 0;
    const auto operation = ring_operation(n.args[1]);
    if (n.number == SYS_setsockopt) {
        std::vector<xdp_umem_reg> area(1);
        auto first_fields = bytes_of(area).first(2 * sizeof(uint64_t));
        bool registers = n.args[1] == SOL_XDP && n.args[2] == XDP_UMEM_REG;
        if (registers && co_await worker_.pager.memory.read(*fragment, {n.args[3]}, first_fields)) {
            buffers.push_back({reinterpret_cast<void*>(area[0].addr), area[0].len});
        }
    } else if (operation == IORING_REGISTER_BUFFERS) {
        list = n.args[2], count = n.args[3];
    } else if (operation == IORING_REGISTER_BUFFERS2) {
        std::vector<io_uring_rsrc_register> wanted(1);
        if (co_await worker_.pager.memory.read(*fragment, {n.args[2]}, bytes_of(wanted))) {
            list = wanted[0].data, count = wanted[0].nr;
        }
    } else if (operation == IORING_REGISTER_BUFFERS_UPDATE) {
        std::vector<io_uring_rsrc_update2> wanted(1);
        if (co_await worker_.pager.memory.read(*fragment, {n.args[2]}, bytes_of(wanted))) {
            list = wanted[0].data, count = wanted[0].nr;
        }
    }
    if (list != 0 && count != 0 && count <= most_buffers) {
        std::vector<iovec> found(count);
        if (co_await worker_.pager.memory.read(*fragment, {list}, bytes_of(found)))
            buffers = std::move(found);
    }
    std::vector<Range> ranges;
    uint64_t left = most_held_bytes;
    for (const iovec& buffer : buffers) {
        uint64_t begin = reinterpret_cast<uint64_t>(buffer.iov_base);
        if (begin == 0 || buffer.iov_len == 0 || buffer.iov_len > left || begin >= user_space_end) {
            continue;
        }
        left -= buffer.iov_len;
        ranges.push_back({{begin & page_mask}, Address{begin + buffer.iov_len}.page_end()});
    }
    co_return ranges;
}

}  // namespace gpr::worker
