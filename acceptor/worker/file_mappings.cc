#include "acceptor/worker/file_mappings.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "acceptor/worker/mapping_changes.h"
#include "acceptor/worker/memory_calls.h"
#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "monitor/node/address_plan.h"
#include "monitor/node/anonymous_memory.h"

namespace gpr::worker {

namespace {

// What /proc/PID/maps shows for shared memory without a file.
constexpr const char* of_no_file = "/dev/zero (deleted)";
constexpr const char* cannot_copy = "cannot copy the program's private file memory";

// The kernel maps io_uring's rings at the highest place with room (io_uring_get_unmapped_area), so
// we leave no room above the place that they shall get.
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

uint32_t FileMappings::name_source(const std::shared_ptr<Fd>& file) {
    std::erase_if(sources_, [](const auto& entry) { return entry.second.expired(); });
    auto known = std::ranges::find_if(
        sources_, [&](const auto& entry) { return entry.second.lock() == file; });
    if (known != sources_.end()) return known->first;
    constexpr uint32_t of_node = (1u << source_node_shift) - 1;
    last_source_ = last_source_ % of_node + 1;
    const uint32_t source = uint32_t{worker_.self} << source_node_shift | last_source_;
    sources_[source] = file;
    return source;
}

bool FileMappings::find_content(Mapping& m) const {
    auto source = sources_.find(m.source);
    if (source != sources_.end()) m.content = source->second.lock();
    return m.content != nullptr;
}

std::vector<std::shared_ptr<Fd>> FileMappings::sources_of(const RemoteProcess& process) {
    std::vector<std::shared_ptr<Fd>> sources = process.sources;
    if (!process.fragment) return sources;
    for (const auto& [begin, m] : process.fragment->space.all()) {
        if (m.source != 0 && m.content) sources.push_back(m.content);
    }
    std::ranges::sort(sources);
    auto [first, last] = std::ranges::unique(sources);
    sources.erase(first, last);
    return sources;
}

// Maps a file of this host, or shared memory for its devices. A private mapping is like any memory
// born here, except that its pages have content from the start; anything else can be used only
// here.
Task<void> FileMappings::map_file(RemoteProcess& process, Notification n) {
    worker_.counts.fd_owner++;
    auto guard = co_await worker_.metadata.lock();
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto notifier = process.notifier;
    auto at = place_for(fragment->space, n.args, arena_of(worker_.self));
    if (!at) {
        process.notifier->reply_error(n.id, at.error() == no_room ? ENOMEM : at.error());
        co_return;
    }
    const bool has_file = !(n.args[3] & MAP_ANONYMOUS);
    int fd = has_file ? static_cast<int>(n.args[4]) : -1;
    std::string link = fmt::format("/proc/{}/fd/{}", process.host_pid, fd);
    struct stat status = {};
    bool regular = has_file && stat(link.c_str(), &status) == 0 && S_ISREG(status.st_mode);
    constexpr uint64_t placing = MAP_FIXED | MAP_FIXED_NOREPLACE;
    Mapped made;
    Mapping& m = made.mapping = private_mapping(n.args, pages_of(at->value, n.args[1]));
    m.object = worker_.next_object++;
    m.birth = worker_.self;
    m.anchored = !regular || (n.args[3] & MAP_TYPE) != MAP_PRIVATE;
    auto alone = co_await worker_.pager.ranges.lock(fragment, m.range);
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
        m.content = files_.of_descriptor(process.host_pid, fd);
        if (!m.content) {
            m.content = std::make_shared<Fd>(
                static_cast<int>(syscall(SYS_pidfd_getfd, process.pidfd.get(), fd, 0)));
        }
        m.source = name_source(m.content);
    }
    if (!m.anchored && (m.prot & PROT_WRITE)) {
        auto copied = co_await replace_by_anonymous(*fragment, m, cannot_copy);
        if (!copied) {
            spdlog::warn("process {}: {}", process.pid, copied.error().message());
            co_await worker_.memory_calls.unmap(process, m.range);
            process.notifier->reply_error(n.id, EIO);
            co_return;
        }
    }
    const Range range = m.range;
    std::error_code ignored;
    made.path = has_file ? std::filesystem::read_symlink(link, ignored).string() : of_no_file;
    AddressChanges& changes = worker_.mapping_changes.changes;
    co_await changes.map(fragment, std::move(made), worker_.self);
    changes.lock_new(*fragment, range, false);
    notifier->reply_raw(n.id, result);
}

// Replaces private file mappings by anonymous memory, because their written pages cannot be taken
// one by one. Each page is read from the file when it is first touched. With a new object, so that
// what home knows of the old one does not prevent writing here.
Task<void> FileMappings::copy_files(std::shared_ptr<Fragment> shared, Range range) {
    Fragment& fragment = *shared;
    std::vector<Address> files;
    fragment.space.for_each(range, [&](const Mapping& m) {
        const bool ours = m.birth == worker_.self && !m.anchored;
        if (m.backing == Backing::native_file && ours) files.push_back(m.range.begin);
    });
    for (Address at : files) {
        Mapping copy = *fragment.space.find(at);
        copy.object = worker_.next_object++;
        copy.object_page = 0;
        copy.backing = Backing::anonymous;
        copy.registered = true;
        const std::vector<Range> all{copy.range};
        auto alone = co_await worker_.pager.ranges.lock(shared, copy.range);
        auto copied =
            co_await replace_in_use(fragment, copy.range, copy.prot & ~PROT_WRITE, cannot_copy);
        if (!copied && fragment.executor().dead()) co_return;
        if (!copied) co_return worker_.link.close(copied.error().message());
        Mapped made;
        made.mapping = std::move(copy);
        co_await worker_.mapping_changes.changes.map(shared, std::move(made), worker_.self);
        co_await drop_pages(fragment, all);
    }
}

}  // namespace gpr::worker
