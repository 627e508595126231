#include "acceptor/worker/device_memory.h"

#include <asm/ioctl.h>
#include <fcntl.h>
#include <linux/if_xdp.h>
#include <linux/io_uring.h>
#include <linux/major.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>

#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/named_memory.h"
#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "monitor/node/refusals.h"
#include "monitor/node/thread_progress.h"

namespace gpr::worker {

namespace {

// A call that has slept for so long has pinned its pages, or has failed; or has run for so long,
// and for each page.
constexpr std::chrono::milliseconds pinned_in{20};
constexpr std::chrono::microseconds page_pinned_in{1};
constexpr uint64_t most_buffers = 1 << 14;        // IORING_MAX_REG_BUFFERS
constexpr uint64_t most_held_bytes = 4ULL << 30;  // the lengths are whatever the program says
constexpr size_t most_argument_bytes = 512;

template <class T>
std::span<std::byte> bytes_of(std::vector<T>& list) {
    return std::as_writable_bytes(std::span(list));
}

// From the cache: the file system may take its time.
bool may_pin(const std::filesystem::path& descriptor) {
    struct statx file {};
    if (statx(AT_FDCWD, descriptor.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &file) != 0)
        return false;
    const mode_t mode = file.stx_mode;
    if (S_ISREG(mode) || S_ISDIR(mode) || S_ISFIFO(mode)) return false;
    return !S_ISCHR(mode) || file.stx_rdev_major != MEM_MAJOR;
}

}  // namespace

bool DeviceMemory::may_be_pinned_by(const RemoteProcess& process) {
    if (process.fd_base == 0) return false;
    std::error_code error;
    const std::filesystem::path folder = fmt::format("/proc/{}/fd", process.host_pid);
    for (std::filesystem::directory_iterator at(folder, error), end; at != end && !error;
         at.increment(error)) {
        const std::string name = at->path().filename().string();
        unsigned number = 0;
        std::from_chars(name.data(), name.data() + name.size(), number);
        if (has_fd_here(process, number) && may_pin(at->path())) return true;
    }
    return false;
}

Task<void> DeviceMemory::pin_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
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
    auto notifier = process.notifier;
    const pid_t host_tid = thread.host_tid;
    std::vector<Range> ranges = co_await ranges_to_pin(fragment, n);
    co_await run_with(std::move(fragment), std::move(notifier), n, host_tid, std::move(ranges));
}

// What a driver is asked to pin (cudaHostRegister, V4L2_MEMORY_USERPTR and others).
Task<void> DeviceMemory::ioctl_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    if (!has_fd_here(process, n.args[0])) {
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto notifier = process.notifier;
    const pid_t host_tid = thread.host_tid;
    std::vector<Range> ranges = co_await ranges_in_argument(fragment, n);
    co_await run_with(std::move(fragment), std::move(notifier), n, host_tid, std::move(ranges));
}

// Makes the call here. While the kernel pins pages under the mmap lock it does not wait for missing
// ones, but fails with EFAULT; so they are present before. The process may end meanwhile.
Task<void> DeviceMemory::run_with(std::shared_ptr<Fragment> fragment,
                                  std::shared_ptr<FilterNotifier> notifier, Notification n,
                                  pid_t host_tid, std::vector<Range> ranges) {
    for (Range range : ranges) {
        spdlog::debug("process {}: {:#x}+{:#x} is to be pinned", fragment->pid(), range.begin.value,
                      range.size());
        co_await worker_.pager.supply.make_resident(*fragment, range, Access::write);
    }
    uint64_t held = 0, pages = 0;
    for (const Range& range : ranges) pages += range.size() / page_size;
    if (!ranges.empty()) {
        held = co_await worker_.pager.supply.hold(*fragment, std::move(ranges), Access::write);
    }
    worker_.counts.fd_owner++;
    if (held != 0) spawn(release_when_pinned(host_tid, held, pages));
    notifier->let_it_run(n.id);
}

Task<void> DeviceMemory::release_when_pinned(pid_t host_tid, uint64_t held, uint64_t pages) {
    const Progress enough{pinned_in + pages * page_pinned_in, pinned_in};
    co_await thread_gets_on(worker_.loop, host_tid, enough);
    worker_.pager.supply.release(held);
}

Task<std::vector<Range>> DeviceMemory::ranges_in_argument(std::shared_ptr<Fragment> fragment,
                                                          Notification n) {
    const size_t size = std::min<size_t>(_IOC_SIZE(n.args[1]), most_argument_bytes);
    std::vector<uint64_t> words(size / sizeof(uint64_t));
    if (words.empty() ||
        !co_await worker_.pager.memory.read(*fragment, {n.args[2]}, bytes_of(words)))
        co_return std::vector<Range>{};
    co_return named_memory(fragment->space, words, most_held_bytes);
}

Task<std::vector<Range>> DeviceMemory::ranges_to_pin(std::shared_ptr<Fragment> fragment,
                                                     Notification n) {
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
