// Files of this host that the program uses by name (path rules) or has open here: its descriptors
// from fd_base on. What is done with those never reaches us, but for calls that map them, or that
// may be about descriptors of both nodes.

#include <limits.h>
#include <linux/close_range.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "acceptor/box/empty_process.h"
#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "monitor/node/mapping_news.h"
#include "syscall/table.h"

namespace gpr {

namespace {

constexpr uint64_t fill_step = 256 * page_size;
constexpr uint64_t address_limit = 0x7ffffffff000;

// The rings of io_uring go where the kernel likes, which is as high as there is room
// (io_uring_get_unmapped_area): so there is room nowhere above the place that we have for them.
Task<int64_t> map_below_all(Fragment& fragment, pid_t host_pid, Range place,
                            std::array<uint64_t, 4> prot_flags_fd_offset) {
    auto present = read_inherited_mappings(host_pid);
    if (!present) co_return -ENOMEM;
    std::vector<Call> fillers, empties;
    auto fill = [&](Address begin, Address end) {
        if (begin >= end) return;
        fillers.push_back(
            {SYS_mmap,
             {begin.value, end - begin, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, ~0UL, 0},
             0});
    };
    Address from = place.end;
    for (const InheritedMapping& m : *present) {
        if (m.range.end <= from) continue;
        fill(from, m.range.begin);
        from = std::min(m.range.end, Address{address_limit});
    }
    fill(from, {address_limit});
    StubThread& executor = fragment.executor();
    co_await executor.run(fillers);
    const auto& [prot, flags, fd, offset] = prot_flags_fd_offset;
    int64_t mapped = co_await executor.call(SYS_mmap, 0, place.size(), prot, flags, fd, offset);
    for (const Call& filler : fillers) {
        bool filled = filler.result == static_cast<int64_t>(filler.args[0]);
        if (filled) empties.push_back({SYS_munmap, {filler.args[0], filler.args[1]}, 0});
    }
    bool elsewhere = mapped > 0 && mapped != static_cast<int64_t>(place.begin.value);
    if (elsewhere) {
        empties.push_back({SYS_munmap, {static_cast<uint64_t>(mapped), place.size()}, 0});
    }
    co_await executor.run(empties);
    co_return elsewhere ? -ENOMEM : mapped;
}

}  // namespace

// What lies beyond the end of the file stays zero.
Result<void> Worker::fill_from_file(Fragment& fragment, const Mapping& m) {
    std::vector<std::byte> buffer(std::min(fill_step, m.range.size()));
    for (Address at = m.range.begin; at < m.range.end;) {
        size_t wanted = std::min<uint64_t>(buffer.size(), m.range.end - at);
        auto offset = static_cast<off_t>(m.content_offset + (at - m.range.begin));
        ssize_t got = TEMP_FAILURE_RETRY(pread(m.content->get(), buffer.data(), wanted, offset));
        if (got < 0) return fail(errno, "cannot read a file that the program maps");
        if (got == 0) return {};
        size_t bytes = static_cast<size_t>(got);
        if (!fragment.memory().write_exact(at, buffer.data(), bytes)) {
            return fail("cannot fill the program's copy of a file");
        }
        at = at + bytes;
    }
    return {};
}

bool Worker::has_fd_here(const RemoteProcess& process, uint64_t fd) {
    auto number = static_cast<uint32_t>(fd);
    if (process.fd_base == 0 || number > INT32_MAX) return false;
    return number >= process.fd_base || process.names.contains(static_cast<int>(number));
}

// Where the program's words say; the kernel reads them again, and finds no more than the sandbox
// has, whatever another thread made of them meanwhile.
Task<void> Worker::path_call(RemoteProcess& process, RemoteThread& thread, Notification n,
                             uint64_t path_at) {
    auto path = co_await pager_.read_text(*process.fragment, {path_at}, PATH_MAX);
    PathVerdict verdict = path ? paths_.owner_of(*path) : PathVerdict{};
    const Row* row = find_row(n.number);
    bool opens = row && row->opens_by_name();
    bool for_home = verdict.standby && verdict.owner == PathOwner::acceptor &&
                    !use_profile(verdict, *path, opens);
    if (verdict.owner == PathOwner::home || for_home) {
        co_await forward(process, thread, n);
        co_return;
    }
    if (verdict.owner == PathOwner::whoever) {
        int64_t result = co_await ask_home(process, thread, n, true);
        if (result == thread_gone && thread.stub->dead()) co_return;
        bool elsewhere =
            result == -ENOENT && (!verdict.standby || use_profile(verdict, *path, opens));
        if (!elsewhere) {
            give_answer(thread, n.id, result);
            co_return;
        }
        hand_over_answered(thread);
    }
    spdlog::debug("tid {}: {} is looked up here", thread.tid, *path);
    used_paths_.insert(static_cast<uint32_t>(verdict.rule));
    calls_fd_owner_++;
    process.notifier->let_it_run(n.id);
}

bool Worker::use_profile(const PathVerdict& verdict, const std::string& path, bool opens) {
    if (access(path.c_str(), F_OK) != 0) return false;
    // Who only looks for it has not decided for it.
    if (!opens) return true;
    const std::string name = paths_.all()[verdict.rule].standby;
    if (name.empty()) return true;  // since we looked
    paths_.use(verdict.rule);
    pager_.probe_for_pins();
    FrameBuilder frame;
    auto use = frame.session().initProfile();
    use.setName(name);
    use.setPath(path);
    link_.send(frame, gpr::Priority::urgent);
    return true;
}

// Numbers of both nodes in one range: home closes its own, and so do we.
Task<void> Worker::close_range_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    uint64_t first = static_cast<uint32_t>(n.args[0]), last = static_cast<uint32_t>(n.args[1]);
    co_await forget_epolls(process, first, last);
    if (process.fd_base == 0 || last < process.fd_base || first > last) {
        co_await forward(process, thread, n);
        co_return;
    }
    uint64_t ours = std::max<uint64_t>(first, process.fd_base);
    int64_t closed = co_await process.fragment->executor().call(
        SYS_close_range, ours, last, n.args[2] & ~uint64_t{CLOSE_RANGE_UNSHARE});
    if (closed < 0 || first >= process.fd_base) {
        process.notifier->reply_raw(n.id, closed);
        co_return;
    }
    n.args[1] = process.fd_base - 1;
    // Not by going there: it may have come from there for this.
    int64_t result = co_await ask_home(process, thread, n, true);
    if (result == thread_gone && thread.stub->dead()) co_return;
    give_answer(thread, n.id, result);
}

// Memory that shows a file of ours. A private view is like any memory that began here, but that
// its pages have content from the start; whatever else can be seen here only.
Task<void> Worker::map_file(RemoteProcess& process, Notification n) {
    calls_fd_owner_++;
    auto guard = co_await metadata_.lock();
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto at = place_for(fragment->space, n);
    if (!at) {
        process.notifier->reply_error(n.id, at.error() == no_room ? ENOMEM : at.error());
        co_return;
    }
    int fd = static_cast<int>(n.args[4]);
    std::string link = fmt::format("/proc/{}/fd/{}", process.host_pid, fd);
    struct stat status = {};
    bool regular = stat(link.c_str(), &status) == 0 && S_ISREG(status.st_mode);
    constexpr uint64_t placing = MAP_FIXED | MAP_FIXED_NOREPLACE;
    Mapping m;
    m.range = {*at, Address{at->value + n.args[1]}.page_end()};
    m.prot = static_cast<int>(n.args[2]);
    m.object = next_object_++;
    m.born_at_acceptor = m.file = true;
    m.backing = Backing::native_file;
    m.anchored = !regular || (n.args[3] & MAP_TYPE) != MAP_PRIVATE;
    int64_t result = co_await fragment->executor().call(SYS_mmap, at->value, n.args[1], n.args[2],
                                                        (n.args[3] & ~placing) | MAP_FIXED,
                                                        static_cast<uint64_t>(fd), n.args[5]);
    if (result == -EINVAL && m.anchored && n.args[0] == 0 && !(n.args[3] & placing)) {
        result = co_await map_below_all(*fragment, process.host_pid, m.range,
                                        {n.args[2], n.args[3], n.args[4], n.args[5]});
    }
    if (result != static_cast<int64_t>(at->value)) {
        process.notifier->reply_raw(n.id, result);
        co_return;
    }
    if (!m.anchored) {
        m.content = std::make_shared<Fd>(
            static_cast<int>(syscall(SYS_pidfd_getfd, process.pidfd.get(), fd, 0)));
        m.content_offset = n.args[5];
    }
    if (!m.anchored && (m.prot & PROT_WRITE)) {
        auto copied = co_await copy_of_file(*fragment, m);
        if (!copied) {
            spdlog::warn("process {}: {}", process.pid, copied.error().message());
            co_await unmap(process, m.range);
            process.notifier->reply_error(n.id, EIO);
            co_return;
        }
    }
    pager_.add_object(m.object, self_);
    std::error_code ignored;
    tell_mapped(link_, process.pid, m, 0, std::filesystem::read_symlink(link, ignored).string());
    auto replaced = fragment->space.map(std::move(m));
    pager_.discard_unmapped(fragment->space, replaced);
    for (const Mapping& old : replaced) fragment->wake(old.range);
    co_await pager_.forget_trapped(replaced);
    process.notifier->reply_raw(n.id, result);
}

// Private file memory cannot be taken page by page once it is written; a copy of it can.
Task<Result<void>> Worker::copy_of_file(Fragment& fragment, Mapping& m) {
    int64_t made = co_await fragment.executor().call(
        SYS_mmap, m.range.begin.value, m.range.size(), static_cast<uint64_t>(m.prot),
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, ~0UL, 0);
    auto mapped = from_kernel(made, "cannot copy the program's private file memory");
    if (!mapped) co_return tl::make_unexpected(mapped.error());
    m.backing = Backing::anonymous;
    co_return fill_from_file(fragment, m);
}

// As a new object: what home knows of the old one is no hindrance to writing here.
Task<void> Worker::copy_files(RemoteProcess& process, Range range) {
    Fragment& fragment = *process.fragment;
    std::vector<Address> files;
    fragment.space.for_each(range, [&](const Mapping& m) {
        if (m.backing == Backing::native_file && !m.anchored) files.push_back(m.range.begin);
    });
    for (Address at : files) {
        Mapping copy = *fragment.space.find(at);
        copy.object = next_object_++;
        copy.object_page = 0;
        auto copied = co_await copy_of_file(fragment, copy);
        if (!copied) link_.close(copied.error().message());
        pager_.add_object(copy.object, self_);
        tell_mapped(link_, process.pid, copy, 0);
        auto replaced = fragment.space.map(std::move(copy));
        pager_.discard_unmapped(fragment.space, replaced);
    }
}

}  // namespace gpr
