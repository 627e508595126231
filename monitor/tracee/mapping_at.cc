#include "monitor/tracee/mapping_at.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include <array>
#include <climits>

#include "base/fd.h"
#include "base/uapi/procmap.h"

namespace gpr {

namespace {

// Linux before 6.11, or a name that is too long for the query.
constexpr int cannot_say = ENOTSUP;

class Queries {
public:
    explicit Queries(pid_t pid)
        : pid_(pid), maps_(open(fmt::format("/proc/{}/maps", pid).c_str(), O_RDONLY | O_CLOEXEC)) {}

    // flags: PROCMAP_QUERY_*
    Result<MapsEntry> ask(Address at, uint64_t flags) {
        if (!maps_) return fail(errno, fmt::format("cannot open /proc/{}/maps", pid_));
        procmap_query query{};
        query.size = sizeof query;
        query.query_addr = at.value;
        query.query_flags = flags;
        query.vma_name_addr = reinterpret_cast<uint64_t>(name_.data());
        query.vma_name_size = name_.size();
        if (ioctl(maps_.get(), PROCMAP_QUERY, &query) != 0) {
            int error = errno == ENOENT || errno == ESRCH ? errno : cannot_say;
            return fail(error, fmt::format("a mapping of process {} at {:#x}", pid_, at.value));
        }
        MapsEntry e;
        e.range = {{query.vma_start}, {query.vma_end}};
        e.prot = (query.vma_flags & PROCMAP_QUERY_VMA_READABLE ? PROT_READ : 0) |
                 (query.vma_flags & PROCMAP_QUERY_VMA_WRITABLE ? PROT_WRITE : 0) |
                 (query.vma_flags & PROCMAP_QUERY_VMA_EXECUTABLE ? PROT_EXEC : 0);
        e.shared = query.vma_flags & PROCMAP_QUERY_VMA_SHARED;
        e.offset = query.vma_offset;
        e.inode = query.inode;
        e.device = makedev(query.dev_major, query.dev_minor);
        if (query.vma_name_size > 0) e.name = name_.data();
        return e;
    }

private:
    pid_t pid_;
    Fd maps_;
    std::array<char, PATH_MAX> name_{};
};

Result<std::vector<MapsEntry>> look_through_all(pid_t pid, Range range) {
    GPR_TRY(auto maps, read_maps(pid));
    std::erase_if(maps, [&](const MapsEntry& e) { return !e.range.overlaps(range); });
    return maps;
}

}  // namespace

Result<MapsEntry> mapping_at(pid_t pid, Address at) {
    auto found = Queries(pid).ask(at, 0);
    if (found || found.error().code != cannot_say) return found;
    GPR_TRY(auto all, look_through_all(pid, {at, at + 1}));
    if (all.empty()) {
        return fail(ENOENT, fmt::format("a mapping of process {} at {:#x}", pid, at.value));
    }
    return std::move(all.front());
}

Result<std::vector<MapsEntry>> mappings_in(pid_t pid, Range range) {
    std::vector<MapsEntry> found;
    Queries queries(pid);
    for (Address at = range.begin; at < range.end;) {
        auto next = queries.ask(at, PROCMAP_QUERY_COVERING_OR_NEXT_VMA);
        if (!next && next.error().code == ENOENT) break;
        if (!next && next.error().code == cannot_say) return look_through_all(pid, range);
        if (!next) return tl::make_unexpected(next.error());
        if (!next->range.overlaps(range)) break;
        at = next->range.end;
        found.push_back(std::move(*next));
    }
    return found;
}

}  // namespace gpr
