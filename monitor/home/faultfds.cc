#include "monitor/home/faultfds.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "monitor/home/home.h"
#include "monitor/home/taken_calls.h"
#include "monitor/node/address_change.h"
#include "monitor/paging/program_faultfd.h"

namespace gpr::home {

namespace {

uint64_t inode_of(const std::string& path) {
    struct stat st {};
    return stat(path.c_str(), &st) == 0 && S_ISSOCK(st.st_mode) ? st.st_ino : 0;
}

bool is_sound(Range range) {
    return range.begin.value % page_size == 0 && range.end.value % page_size == 0 &&
           range.begin < range.end;
}

Range range_of(const uffdio_range& range) { return {{range.start}, {range.start + range.len}}; }

// The ioctls' arguments, in the order of their numbers.
union IoctlArgument {
    uffdio_api api;
    uffdio_register registration;
    uffdio_range range;
    uffdio_copy copy;
    uffdio_zeropage zero;
};

}  // namespace

// Makes a real one first, to ask the kernel whether the program may.
Task<int64_t> Faultfds::make_faultfd(HomeProcess& process, StubThread& stub, uint64_t flags) {
    auto guard = co_await stub.lock();
    std::vector<Call> calls{Call{SYS_userfaultfd, {flags}, 0}};
    co_await stub.run_locked(calls);
    if (stub.dead() || calls[0].result < 0) co_return calls[0].result;
    constexpr uint64_t modes = SOCK_CLOEXEC | SOCK_NONBLOCK;
    auto real = static_cast<uint64_t>(calls[0].result);
    calls = {Call{SYS_close, {real}, 0},
             Call{SYS_socketpair,
                  {AF_UNIX, SOCK_STREAM | (flags & modes), 0, stub.scratch_address().value},
                  0}};
    co_await stub.run_locked(calls);
    if (stub.dead() || calls[1].result < 0) co_return calls[1].result;
    std::array<int, 2> pair = stub.scratch().get<std::array<int, 2>>().to_pass_on();
    Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
    auto faultfd = std::make_shared<ProgramFaultfd>();
    faultfd->pid = process.pid;
    faultfd->socket = Fd(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), pair[1], 0)));
    calls = {Call{SYS_close, {static_cast<uint64_t>(pair[1])}, 0}};
    co_await stub.run_locked(calls);
    uint64_t inode = inode_of(fmt::format("/proc/{}/fd/{}", process.pid, pair[0]));
    if (!faultfd->socket || inode == 0) {
        calls = {Call{SYS_close, {static_cast<uint64_t>(pair[0])}, 0}};
        co_await stub.run_locked(calls);
        co_return -ENOMEM;
    }
    faultfd->closed = home_.loop.watch(faultfd->socket.get(), POLLHUP, [this, inode](uint32_t) {
        spawn(on_faultfd_closed(inode));
    });
    faultfds_[inode] = std::move(faultfd);
    co_return pair[0];
}

std::shared_ptr<ProgramFaultfd> Faultfds::faultfd_of(pid_t pid, int fd) {
    if (faultfds_.empty()) return nullptr;
    auto it = faultfds_.find(inode_of(fmt::format("/proc/{}/fd/{}", pid, fd)));
    return it == faultfds_.end() ? nullptr : it->second;
}

bool Faultfds::has_any(pid_t pid) const {
    return std::ranges::any_of(faultfds_,
                               [pid](const auto& entry) { return entry.second->pid == pid; });
}

Task<void> Faultfds::make_faultfd_here(HomeProcess& process, HomeThread& thread, Notification n) {
    auto taken = co_await home_.taken_calls.take_call(thread);
    if (!taken) co_return;
    int64_t made = co_await make_faultfd(process, *taken->stub, n.args[0]);
    co_await home_.taken_calls.return_from(thread, std::move(*taken), made);
}

Task<void> Faultfds::ioctl_here(HomeProcess& process, HomeThread& thread, Notification n,
                                std::shared_ptr<ProgramFaultfd> held) {
    auto taken = co_await home_.taken_calls.take_call(thread);
    if (!taken) co_return;
    int64_t result =
        co_await ioctl_faultfd(process, held, static_cast<uint32_t>(n.args[1]), {n.args[2]});
    co_await home_.taken_calls.return_from(thread, std::move(*taken), result);
}

Task<int64_t> Faultfds::ioctl_faultfd(HomeProcess& process, std::shared_ptr<ProgramFaultfd> held,
                                      uint32_t command, Address at) {
    ProgramFaultfd& faultfd = *held;
    std::shared_ptr<Fragment> fragment = process.fragment;
    IoctlArgument argument{};
    size_t size = _IOC_SIZE(command);
    if (size > sizeof argument) co_return -EINVAL;
    auto bytes = std::as_writable_bytes(std::span(&argument, 1)).first(size);
    if (!co_await home_.pager.memory.read(*fragment, at, bytes)) co_return -EFAULT;
    if (!faultfd.agreed && command != UFFDIO_API) co_return -EINVAL;
    int64_t result = -EINVAL;
    switch (command) {
        case UFFDIO_API: result = agree(faultfd, argument.api); break;
        case UFFDIO_REGISTER: {
            auto& wanted = argument.registration;
            result = co_await let_fill(faultfd, range_of(wanted.range), wanted.mode);
            wanted.ioctls = faultfd_range_ioctls;
            break;
        }
        case UFFDIO_UNREGISTER: co_return co_await stop_filling(faultfd, range_of(argument.range));
        case UFFDIO_WAKE: wake_filled(faultfd, range_of(argument.range)); co_return 0;
        case UFFDIO_COPY: result = co_await copy_pages(process, faultfd, argument.copy); break;
        case UFFDIO_ZEROPAGE: result = co_await zero_pages(faultfd, argument.zero); break;
        default:
            spdlog::info("ioctl {:#x} of userfaultfd is not supported", command);
            co_return -EINVAL;
    }
    if (result == 0 || command != UFFDIO_REGISTER)
        co_await home_.pager.memory.write(*fragment, at, bytes);
    co_return result;
}

int64_t Faultfds::agree(ProgramFaultfd& faultfd, uffdio_api& api) {
    bool sound = api.api == UFFD_API && (api.features & ~faultfd_features) == 0 && !faultfd.agreed;
    if (!sound) {
        api = {};
        return -EINVAL;
    }
    faultfd.agreed = true;
    faultfd.features = api.features;
    api.features = faultfd_features;
    api.ioctls = faultfd_ioctls;
    return 0;
}

Task<int64_t> Faultfds::let_fill(ProgramFaultfd& faultfd, Range range, uint64_t mode) {
    if (!is_sound(range) || mode != UFFDIO_REGISTER_MODE_MISSING) co_return -EINVAL;
    auto guard = co_await home_.metadata.lock();
    HomeProcess* process = home_.find_process(faultfd.pid);
    if (!process || !process->fragment) co_return -ESRCH;
    AddressSpace& space = process->fragment->space;
    int64_t error = 0;
    uint64_t covered = 0;
    space.overlapping(range, [&](const Mapping& m) {
        if (m.shared || m.file || m.backing != Backing::anonymous || m.trapped) error = -EINVAL;
        const bool is_its_own = std::ranges::any_of(
            faultfd.ranges, [&](const Range& r) { return r.overlaps(m.range); });
        if (m.program_fills && !is_its_own) error = -EBUSY;
        covered += std::min(m.range.end, range.end) - std::max(m.range.begin, range.begin);
    });
    if (error != 0 || covered == 0) co_return error != 0 ? error : -EINVAL;
    home_.pager.unfilled.let_program_fill(*process->fragment, range, true);
    home_.acceptors.tell(process->pid, ProgramFills{range, true});
    if (std::ranges::find(faultfd.ranges, range) == faultfd.ranges.end()) {
        faultfd.ranges.push_back(range);
    }
    co_return 0;
}

Task<int64_t> Faultfds::stop_filling(ProgramFaultfd& faultfd, Range range) {
    if (!is_sound(range)) co_return -EINVAL;
    pid_t pid = faultfd.pid;
    std::vector<Range> left;
    for (Range r : faultfd.ranges) {
        if (!r.overlaps(range)) {
            left.push_back(r);
            continue;
        }
        if (r.begin < range.begin) left.push_back({r.begin, range.begin});
        if (range.end < r.end) left.push_back({range.end, r.end});
    }
    faultfd.ranges = std::move(left);
    auto guard = co_await home_.metadata.lock();
    HomeProcess* process = home_.find_process(pid);
    if (!process || !process->fragment) co_return 0;
    home_.pager.unfilled.let_program_fill(*process->fragment, range, false);
    home_.acceptors.tell(pid, ProgramFills{range, false});
    co_return 0;
}

Task<int64_t> Faultfds::copy_pages(HomeProcess& process, ProgramFaultfd& faultfd,
                                   uffdio_copy& copy) {
    constexpr uint64_t known = UFFDIO_COPY_MODE_DONTWAKE;
    Range to{{copy.dst}, {copy.dst + copy.len}};
    if (!is_sound(to) || (copy.mode & ~known) != 0) co_return -EINVAL;
    HomeProcess* owner = home_.find_process(faultfd.pid);
    if (!owner || !owner->fragment) co_return -ESRCH;
    std::shared_ptr<Fragment> source = process.fragment, target = owner->fragment;
    bool wakes = !(copy.mode & UFFDIO_COPY_MODE_DONTWAKE);
    std::vector<std::byte> page(page_size);
    uint64_t done = 0;
    int error = 0;
    while (done < copy.len && error == 0) {
        Mapping* m = target->space.find(to.begin + done);
        if (!m || !m->program_fills) {  // then the source must stay untouched
            error = ENOENT;
            break;
        }
        bool readable = co_await home_.pager.memory.read(*source, {copy.src + done}, page);
        error = EFAULT;
        if (readable) error = co_await home_.pager.unfilled.fill(target, to.begin + done, page);
        if (error == 0) done += page_size;
    }
    if (wakes && done > 0) wake_filled(faultfd, {to.begin, to.begin + done});
    copy.copy = done > 0 ? static_cast<int64_t>(done) : -error;
    co_return done == copy.len ? 0 : done > 0 ? -EAGAIN : -error;
}

Task<int64_t> Faultfds::zero_pages(ProgramFaultfd& faultfd, uffdio_zeropage& zero) {
    Range to = range_of(zero.range);
    if (!is_sound(to) || (zero.mode & ~uint64_t{UFFDIO_ZEROPAGE_MODE_DONTWAKE}) != 0) {
        co_return -EINVAL;
    }
    HomeProcess* owner = home_.find_process(faultfd.pid);
    if (!owner || !owner->fragment) co_return -ESRCH;
    std::shared_ptr<Fragment> target = owner->fragment;
    bool wakes = !(zero.mode & UFFDIO_ZEROPAGE_MODE_DONTWAKE);
    const std::vector<std::byte> page(page_size);
    uint64_t done = 0;
    int error = 0;
    while (done < to.size() && error == 0) {
        error = co_await home_.pager.unfilled.fill(target, to.begin + done, page);
        if (error == 0) done += page_size;
    }
    if (wakes && done > 0) wake_filled(faultfd, {to.begin, to.begin + done});
    zero.zeropage = done > 0 ? static_cast<int64_t>(done) : -error;
    co_return done == to.size() ? 0 : done > 0 ? -EAGAIN : -error;
}

void Faultfds::wake_filled(const ProgramFaultfd& faultfd, Range range) {
    HomeProcess* process = home_.find_process(faultfd.pid);
    if (!process || !process->fragment || !is_sound(range)) return;
    home_.pager.unfilled.wake_unfilled(*process->fragment, range);
    home_.acceptors.tell(process->pid, Filled{range});
}

// A thread waits for a page that only the program can provide.
void Faultfds::on_unfilled(pid_t pid, Address at, bool write, pid_t tid) {
    for (auto& [inode, faultfd] : faultfds_) {
        auto has = [&](Range range) { return range.contains(at); };
        if (faultfd->pid != pid ||
            std::none_of(faultfd->ranges.begin(), faultfd->ranges.end(), has)) {
            continue;
        }
        uffd_msg message{};
        message.event = UFFD_EVENT_PAGEFAULT;
        message.arg.pagefault.address = at.value;
        message.arg.pagefault.flags = write ? UFFD_PAGEFAULT_FLAG_WRITE : 0;
        bool named = faultfd->features & UFFD_FEATURE_THREAD_ID;
        if (named) message.arg.pagefault.feat.ptid = static_cast<uint32_t>(tid);
        faultfd->waiting.push_back(message);
        tell_faults(faultfd);
        return;
    }
}

// Writes as many messages as the program's socket takes; the rest when it has read some.
void Faultfds::tell_faults(const std::shared_ptr<ProgramFaultfd>& faultfd) {
    while (!faultfd->waiting.empty()) {
        const uffd_msg& message = faultfd->waiting.front();
        ssize_t sent =
            send(faultfd->socket.get(), &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) break;
        faultfd->waiting.pop_front();  // written whole, or nobody is left to read it
    }
    if (faultfd->waiting.empty()) {
        faultfd->room = {};
        return;
    }
    std::weak_ptr<ProgramFaultfd> held = faultfd;
    faultfd->room = home_.loop.watch(faultfd->socket.get(), POLLOUT, [this, held](uint32_t) {
        if (auto known = held.lock()) tell_faults(known);
    });
}

// Pages that the program would have filled are zero from now on.
Task<void> Faultfds::on_faultfd_closed(uint64_t inode) {
    auto node = faultfds_.extract(inode);
    if (node.empty()) co_return;
    std::shared_ptr<ProgramFaultfd> faultfd = std::move(node.mapped());
    faultfd->closed = {};
    faultfd->room = {};
    while (!faultfd->ranges.empty()) co_await stop_filling(*faultfd, faultfd->ranges.back());
}

}  // namespace gpr::home
