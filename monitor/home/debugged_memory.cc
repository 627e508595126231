#include "monitor/home/debugged_memory.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "base/file_text.h"
#include "monitor/home/home.h"
#include "monitor/home/main_stack.h"
#include "monitor/home/memory_gate.h"
#include "monitor/home/shown_maps.h"

namespace gpr::home {

namespace {

// What is copied of a file, or shared, and so may not be zero where nobody has touched it.
constexpr uint64_t most_of_file = 64 << 20;

Task<void> add_touched(Loop& loop, std::shared_ptr<Fragment> fragment, Range range,
                       std::vector<Range>& content) {
    constexpr size_t most_pieces = 64;
    while (!range.empty()) {
        const Fragment::Touched found = fragment->touched(range, most_pieces);
        content.insert(content.end(), found.ranges.begin(), found.ranges.end());
        range.begin = found.end;
        if (!range.empty()) co_await loop.sleep(std::chrono::nanoseconds(0));
    }
}

}  // namespace

// Null: it has ended, or has just executed another program.
HomeProcess* DebuggedMemory::process() const {
    HomeProcess* process = home_.find_process(pid_);
    return process && process->fragment ? process : nullptr;
}

Task<size_t> DebuggedMemory::read(Address from, std::span<std::byte> bytes) {
    std::shared_ptr<DebuggedMemory> self = shared_from_this();
    size_t done = 0;
    while (done < bytes.size()) {
        HomeProcess* its = process();
        if (!its) break;
        const Address at = from + done;
        const size_t in_page =
            std::min<size_t>(bytes.size() - done, page_size - at.value % page_size);
        std::shared_ptr<Fragment> fragment = its->fragment;
        bool ok = co_await home_.pager.memory.read(*fragment, at, bytes.subspan(done, in_page));
        if (!ok) break;
        done += in_page;
    }
    breakpoints_.hide(from, bytes.first(done));
    co_return done;
}

Task<bool> DebuggedMemory::write(Address to, std::span<const std::byte> bytes) {
    std::shared_ptr<DebuggedMemory> self = shared_from_this();
    std::vector<std::byte> with_breakpoints(bytes.begin(), bytes.end());
    debug::Breakpoints changed = breakpoints_;
    changed.keep(to, with_breakpoints);
    bool ok = co_await write_raw(to, with_breakpoints);
    if (ok) breakpoints_ = std::move(changed);
    co_return ok;
}

Task<bool> DebuggedMemory::set_breakpoint(Address at, bool there) {
    std::shared_ptr<DebuggedMemory> self = shared_from_this();
    if (breakpoints_.contains(at) == there) co_return true;
    if (!there && !process()) co_return true;  // an unsplit child's: DebuggedProcess::prepare()
    std::byte original{};
    if (there) {
        const size_t got = co_await read(at, std::span(&original, 1));
        if (got != 1) co_return false;
    } else {
        original = breakpoints_.original(at);
    }
    const std::byte wanted = there ? debug::Breakpoints::int3 : original;
    bool ok = co_await write_raw(at, std::span(&wanted, 1));
    if (!ok) co_return false;
    if (there) {
        breakpoints_.add(at, original);
    } else {
        breakpoints_.remove(at);
    }
    co_return true;
}

Task<bool> DebuggedMemory::write_raw(Address to, std::span<const std::byte> bytes) {
    HomeProcess* its = process();
    if (!its) co_return false;
    std::shared_ptr<Fragment> fragment = its->fragment;
    bool writable = true;
    fragment->space.overlapping({to, to + bytes.size()}, [&](const Mapping& m) {
        writable = writable && (m.prot & PROT_WRITE);
    });
    // Each node shows code from its file, unless it is told that the code may differ from that.
    if (!writable)
        co_await home_.memory_gate.open_text(pid_, {to.page(), (to + bytes.size()).page_end()});
    if (process() != its || its->fragment != fragment) co_return false;
    bool ok = co_await home_.pager.memory.write_by_debugger(*fragment, to, bytes);
    co_return ok;
}

Task<void> DebuggedMemory::gather(bool on) {
    std::shared_ptr<DebuggedMemory> self = shared_from_this();
    if (on && process()) gathered_ = process()->fragment;
    std::shared_ptr<Fragment> fragment = gathered_;
    if (!fragment) co_return;
    if (on) {
        co_await home_.pager.forks.begin_fork(fragment);
    } else {
        gathered_.reset();
        co_await home_.pager.forks.end_fork(fragment);
    }
}

Task<std::vector<Range>> DebuggedMemory::content_of(Range mapping, bool has_no_name) {
    std::shared_ptr<DebuggedMemory> self = shared_from_this();
    std::vector<Range> content;
    HomeProcess* its = process();
    if (!its) co_return content;
    std::shared_ptr<Fragment> fragment = its->fragment;
    std::vector<Mapping> parts;
    fragment->space.overlapping(mapping, [&](const Mapping& m) { parts.push_back(m); });
    if (parts.empty()) content.push_back(mapping);  // the kernel's: the vdso
    for (const Mapping& m : parts) {
        const Range part{std::max(m.range.begin, mapping.begin),
                         std::min(m.range.end, mapping.end)};
        const bool code = m.file && (m.prot & PROT_EXEC);
        const bool as_in_file = m.file && m.backing == Backing::native_file && !m.shared;
        const bool changed = as_in_file && !fragment->private_copies(part).empty();
        if (m.anchored || (m.shared && m.file && !has_no_name)) continue;
        if (code || (as_in_file && !changed)) {
            // With the ELF header, which identifies the file.
            if (m.content_offset == 0) content.push_back({part.begin, part.begin + page_size});
        } else if ((m.shared || m.file) && part.size() <= most_of_file) {
            content.push_back(part);
        } else {
            co_await add_touched(home_.loop, fragment, part, content);
        }
    }
    co_return content;
}

std::string DebuggedMemory::auxv() const { return text_of(fmt::format("/proc/{}/auxv", pid_)); }

std::string DebuggedMemory::maps() const {
    HomeProcess* its = process();
    if (!its) return {};
    return shown_maps(*its, fmt::format("/proc/{}/maps", pid_), home_.main_stack.used(*its), false);
}

std::string DebuggedMemory::executable() const {
    HomeProcess* its = process();
    return its ? its->executable : std::string();
}

// Only files that the process has mapped: gpr may read files that the debugger's user may not. The
// path may contain symbolic links, such as /lib, that the process's maps do not.
Result<Fd> DebuggedMemory::open_mapped_file(const std::string& path) {
    const Fd root(open(fmt::format("/proc/{}/root", pid_).c_str(), O_PATH | O_CLOEXEC));
    if (!root) return fail(errno, fmt::format("cannot see the files of process {}", pid_));
    open_how how{};
    how.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    Fd file(static_cast<int>(syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how)));
    struct stat about {};
    if (!file || fstat(file.get(), &about) != 0) return fail(errno, "cannot open " + path);
    if (!S_ISREG(about.st_mode) || !is_mapped(about, file)) {
        return fail(EACCES, fmt::format("process {} has not mapped {}", pid_, path));
    }
    return file;
}

// By inode and device, or by inode and name: on some file systems stat(2) and maps disagree about
// the device.
bool DebuggedMemory::is_mapped(const struct stat& about, const Fd& file) const {
    std::error_code none;
    const std::string name =
        std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", file.get()), none).string();
    std::istringstream lines(maps());
    for (std::string line; std::getline(lines, line);) {
        unsigned major = 0, minor = 0;
        unsigned long inode = 0;
        int before_name = 0;
        const int told = std::sscanf(line.c_str(), "%*s %*s %*s %x:%x %lu %n", &major, &minor,
                                     &inode, &before_name);
        if (told != 3 || inode != about.st_ino) continue;
        const bool same_device = makedev(major, minor) == about.st_dev;
        if (same_device || line.substr(static_cast<size_t>(before_name)) == name) return true;
    }
    return false;
}

}  // namespace gpr::home
