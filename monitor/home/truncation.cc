#include "monitor/home/truncation.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>

#include "monitor/home/file_copies.h"
#include "monitor/home/home.h"
#include "monitor/home/layouts.h"
#include "monitor/home/shared_memory.h"
#include "monitor/home/taken_calls.h"

namespace gpr::home {

namespace {

std::optional<uint64_t> size_of(const Fd& file) {
    struct stat st {};
    if (fstat(file.get(), &st) != 0) return std::nullopt;
    return static_cast<uint64_t>(st.st_size);
}

// The parts of the kernel's private mappings of files that show this file from `from` on.
std::vector<Range> kernels_views(pid_t pid, const Fd& file, uint64_t from) {
    std::vector<Range> views;
    struct stat st {};
    auto maps = read_maps(pid);
    if (!maps || fstat(file.get(), &st) != 0) return views;
    for (const MapsEntry& e : *maps) {
        uint64_t skipped = std::max(from, e.offset) - e.offset;
        bool shows = !e.shared && e.inode == st.st_ino && skipped < e.range.size();
        if (shows) views.push_back({e.range.begin + skipped, e.range.end});
    }
    return views;
}

bool may_shorten_any(uint64_t number, const SyscallArguments& args) {
    return number == SYS_truncate || number == SYS_creat ||
           (number == SYS_open && (args[1] & O_TRUNC)) ||
           (number == SYS_openat && (args[2] & O_TRUNC));
}

}  // namespace

// The present sizes of files with private copies that the call may shorten.
std::vector<FileSize> Truncation::sizes_before(const HomeProcess& process, uint64_t number,
                                               const SyscallArguments& args) {
    std::vector<FileSize> sizes;
    auto note = [&](const std::shared_ptr<Fd>& file) {
        auto size = file ? size_of(*file) : std::nullopt;
        if (size) sizes.push_back({file, *size});
    };
    if (number == SYS_ftruncate) {
        struct stat st {};
        auto link = fmt::format("/proc/{}/fd/{}", process.pid, static_cast<int>(args[0]));
        if (stat(link.c_str(), &st) != 0) return sizes;
        auto file = home_.file_copies.files().find(st.st_dev, st.st_ino);
        // A file that is only read has no copy here, but acceptors have copies of its pages.
        if (!file) file = std::make_shared<Fd>(open(link.c_str(), O_PATH | O_CLOEXEC));
        note(file);
    } else if (may_shorten_any(number, args)) {
        for (const auto& file : home_.file_copies.files().all()) note(file);
    }
    return sizes;
}

Task<void> Truncation::after_truncation(std::vector<FileSize> before) {
    for (const FileSize& file : before) {
        auto size = size_of(*file.file);
        if (size && *size < file.size) co_await drop_beyond(file.file, *size);
    }
}

Task<void> Truncation::drop_beyond(std::shared_ptr<Fd> file, uint64_t size) {
    auto guard = co_await home_.metadata.lock();
    uint64_t end = (size + page_size - 1) & page_mask;
    std::vector<std::pair<pid_t, Range>> gone;
    for (const auto& [pid, process] : home_.processes) {
        if (!process->fragment) continue;
        for (Range range : kernels_views(pid, *file, end)) gone.emplace_back(pid, range);
        for (const auto& [begin, m] : process->fragment->space.all()) {
            bool native = m.backing == Backing::native_file;
            bool copy = m.content == file && !m.shared && !m.trapped && !native;
            uint64_t from = std::max(end, m.content_offset) - m.content_offset;
            if (copy && from < m.range.size()) {
                gone.emplace_back(pid, Range{m.range.begin + from, m.range.end});
            }
        }
    }
    for (auto [pid, range] : gone) {
        HomeProcess* process = home_.find_process(pid);
        std::shared_ptr<Fragment> fragment = process ? process->fragment : nullptr;
        if (!fragment) continue;
        auto alone = co_await home_.pager.ranges.lock(fragment, range);
        std::vector<Mapping> pieces;
        bool copied = false;
        fragment->space.for_each(range, [&](Mapping& m) {
            pieces.push_back(m);
            copied = copied || m.backing == Backing::anonymous;
        });
        home_.layouts.changes.note_discarded(*fragment, range, pieces);
        if (!copied) continue;  // the kernel itself removes pages of the file
        co_await fragment->executor().call(SYS_madvise, range.begin.value, range.size(),
                                           MADV_DONTNEED);
        fragment->wake(range);
    }
}

// A thread at home shortens a file.
Task<void> Truncation::truncate_here(HomeThread& thread, Notification n) {
    SyscallArguments args;
    std::copy(n.args, n.args + 6, args.begin());
    SharedUse use = home_.shared_memory.shared_use(*thread.process, n.number, args);
    co_await home_.shared_memory.before_use(use);
    if (!home_.notifier->still_valid(n.id)) co_return;
    auto sizes = sizes_before(*thread.process, n.number, args);
    auto taken = co_await home_.taken_calls.take_call(thread);
    if (!taken) co_return;
    int64_t result = co_await TakenCalls::make_call(*taken, n);
    if (taken->stub->dead()) co_return;
    co_await home_.shared_memory.after_use(use);
    co_await after_truncation(std::move(sizes));
    co_await home_.taken_calls.return_from(thread, std::move(*taken), result);
}

}  // namespace gpr::home
