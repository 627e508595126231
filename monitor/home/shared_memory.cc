#include "monitor/home/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <fstream>

#include "base/log.h"
#include "monitor/home/calls.h"
#include "monitor/home/children.h"
#include "monitor/home/contended_memory.h"
#include "monitor/home/file_copies.h"
#include "monitor/home/home.h"
#include "monitor/home/layouts.h"
#include "monitor/home/memory_calls.h"
#include "monitor/node/address_change.h"
#include "monitor/node/huge_pages.h"
#include "monitor/node/placement.h"
#include "monitor/tracee/mapping_at.h"
#include "syscall/table.h"

namespace gpr::home {

namespace {

constexpr Range everything{{0}, {~0ULL & page_mask}};

bool opens_truncating(uint32_t number, const SyscallArguments& args) {
    return number == SYS_creat || (number == SYS_open && (args[1] & O_TRUNC)) ||
           (number == SYS_openat && (args[2] & O_TRUNC)) || number == SYS_openat2;
}

std::string link_of(pid_t pid, int fd) { return fmt::format("/proc/{}/fd/{}", pid, fd); }

Fd open_by_mapping(pid_t pid, const MapsEntry& e) {
    std::string by_range =
        fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, e.range.begin.value, e.range.end.value);
    Fd fd(open(by_range.c_str(), O_PATH | O_CLOEXEC));
    if (fd || !e.name.starts_with("/")) return fd;
    std::string by_name = fmt::format("/proc/{}/root{}", pid, e.name);
    fd = Fd(open(by_name.c_str(), O_PATH | O_CLOEXEC));
    struct stat st {};
    if (fd && (fstat(fd.get(), &st) != 0 || st.st_ino != e.inode)) fd.reset();
    return fd;
}

// Whether the kernel writes there at times when the program makes no call.
bool is_file(const Fd& opened, const FileNames& names) {
    struct stat about {};
    return fstat(opened.get(), &about) == 0 && about.st_dev == names.device &&
           about.st_ino == names.inode;
}

bool is_written_by_kernel(const MapsEntry& e, bool from_device) {
    return (from_device && !e.name.starts_with("/dev/zero")) || e.name.starts_with("/[aio]");
}

// Whether a seal (F_ADD_SEALS) forbids writing the file, so that no mapping can become writable.
bool is_sealed(const std::string& link) {
    struct stat st {};
    if (stat(link.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return false;
    Fd fd(open(link.c_str(), O_RDONLY | O_CLOEXEC));
    int seals = fd ? fcntl(fd.get(), F_GET_SEALS) : -1;
    return seals > 0 && (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE));
}

// For a mapping whose descriptor is not known; that may have been opened read-only.
bool may_become_writable(pid_t pid, const MapsEntry& e) {
    std::ifstream in(fmt::format("/proc/{}/smaps", pid));
    std::string begin = fmt::format("{:08x}-{:08x} ", e.range.begin.value, e.range.end.value);
    bool found = false;
    for (std::string line; std::getline(in, line);) {
        found = found || line.starts_with(begin);
        if (found && line.starts_with("VmFlags:")) return line.find(" mw") != line.npos;
    }
    return true;
}

// Whether its pages take room in a file system, which may run out, rather than memory.
bool is_on_file_system(const std::string& mapped_as) {
    return !mapped_as.starts_with("/memfd:") && !mapped_as.starts_with("/dev/zero") &&
           !mapped_as.starts_with("/SYSV");
}

uint64_t pages_of(uint64_t bytes) { return (bytes + page_size - 1) / page_size; }

}  // namespace

SharedFile* SharedMemory::find(const SharedIdentity& identity) {
    const std::pair inode{identity.mapped_device, identity.mapped_inode};
    auto [at, end] = by_inode_.equal_range(inode);
    for (; at != end; ++at) {
        SharedFile& file = files_.at(at->second);
        if (file.identity.is(identity)) return &file;
    }
    return nullptr;
}

// Assigns the mapping to its object. e: its line in /proc/PID/maps; link: the file that it was made
// from, empty if unknown.
void SharedMemory::join_shared(HomeProcess& process, Mapping& m, const MapsEntry& e,
                               const std::string& link) {
    std::optional<ExternalSharers::Opening> opening;  // because is_sealed() opens the file
    if (home_.contended_memory.external_sharers())
        opening.emplace(*home_.contended_memory.external_sharers());
    struct stat st {};
    bool has_fd = !link.empty() && stat(link.c_str(), &st) == 0;
    bool distinct = has_fd && !S_ISREG(st.st_mode);  // a device or ring: a new object every time
    Fd path = has_fd ? Fd(open(link.c_str(), O_PATH | O_CLOEXEC)) : open_by_mapping(process.pid, e);
    bool inherited = process.state == HomeProcess::State::preparing && !process.new_image;
    ino_t ipc = inherited ? process.ipc_at_birth : ipc_namespace_of(process.pid);
    SharedIdentity identity = identity_of(e, path, ipc);
    SharedFile* file = distinct ? nullptr : find(identity);
    m.shared = true;
    m.file = true;  // even anonymous shared memory has content at home
    m.backing = Backing::native_file;
    m.object_page = (e.offset + (m.range.begin - e.range.begin)) / page_size;
    uint64_t end = m.object_page + m.range.size() / page_size;
    if (!file) {
        ObjectId object = home_.layouts.next_object();
        file = &files_[object];
        file->object = object;
        file->kernel_uses = is_written_by_kernel(e, distinct);
        file->is_named = !e.name.starts_with("/dev/zero") && !identity.is_segment;
        file->names.mapped_device = e.device;
        file->names.mapped_inode = e.inode;
        by_inode_.emplace(std::pair{identity.mapped_device, identity.mapped_inode}, object);
        file->identity = std::move(identity);
        file->path = std::move(path);
        uint64_t pages = end;
        bool huge = file->path ? has_huge_pages(fmt::format("/proc/self/fd/{}", file->path.get()))
                               : e.name.starts_with("/anon_hugepage");
        file->kernel_uses = file->kernel_uses || huge;  // huge pages cannot be moved
        if (file->path && fstat(file->path.get(), &st) == 0) {
            file->names.device = st.st_dev;
            file->names.inode = st.st_ino;
            if (S_ISREG(st.st_mode)) {
                pages = pages_of(static_cast<uint64_t>(st.st_size));
            } else {
                file->path.reset();
            }
        }
        home_.pager.shared.add(file->object, Fd(), pages);
        if (file->path && is_on_file_system(e.name))
            home_.pager.shared.expect_no_room(file->object);
        home_.contended_memory.begin_watching(*file, e.name);
    } else if (!file->path && end > home_.pager.shared.pages(file->object)) {
        resize(*file, end);
    } else {
        note_size(*file);
    }
    struct stat opened {};
    if (has_fd && lstat(link.c_str(), &opened) == 0) {
        m.may_write = (opened.st_mode & S_IWUSR) && !is_sealed(link);
    } else if (!(m.prot & PROT_WRITE)) {
        m.may_write = may_become_writable(process.pid, e);
    }
    if (m.prot & PROT_WRITE) note_writer(*file);
    m.object = file->object;
}

// This kernel has just made the mapping at `at`.
Task<void> SharedMemory::map_shared(HomeProcess& process, Address at, uint64_t size, int prot,
                                    std::string link) {
    Mapping m;
    m.range = {at, (at + size).page_end()};
    m.prot = prot;
    auto shown = mapping_at(process.pid, at);
    if (!shown) co_return;
    const size_t known = files_.size();
    join_shared(process, m, *shown, link);
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto replaced = home_.layouts.changes.replace(*fragment, m);
    home_.contended_memory.choose_node(files_.at(m.object));
    // What this call has made nobody else has.
    if (files_.size() > known && !shown->name.starts_with("/dev/zero"))
        home_.contended_memory.meet_those_at_rest(process);
    home_.layouts.announce(process, m);
    co_await home_.layouts.changes.settle(fragment, std::move(replaced));
}

void SharedMemory::follow(Mapping& m, const std::string& link) const {
    struct stat st {};
    if (files_.empty() || stat(link.c_str(), &st) != 0) return;
    for (const auto& [object, file] : files_) {
        const FileNames& names = file.names;
        bool same = names.device == st.st_dev && names.inode == st.st_ino;
        if (same && file.written) m.follows = object;
    }
}

void SharedMemory::follow(Mapping& m, const MapsEntry& e) const {
    for (const auto& [object, file] : files_) {
        const FileNames& names = file.names;
        bool same = names.mapped_device == e.device && names.mapped_inode == e.inode;
        auto copied =
            m.content ? home_.file_copies.files().find(names.device, names.inode) : nullptr;
        if (m.file && file.written && (same || (copied && copied == m.content))) m.follows = object;
    }
}

// The file may be written through shared memory from now on. A private mapping of it shows that on
// pages that its process has not written.
void SharedMemory::let_private_follow(const SharedFile& file) {
    auto copied = home_.file_copies.files().find(file.names.device, file.names.inode);
    for (const auto& [pid, process] : home_.processes) {
        if (!process->fragment) continue;
        AddressSpace& space = process->fragment->space;
        std::vector<Range> showing;
        for (const auto& [begin, m] : space.all()) {
            const bool shows = copied && m.content == copied;
            const bool taken_away = m.trapped && m.content && is_file(*m.content, file.names);
            if ((shows || taken_away) && !m.shared) showing.push_back(m.range);
        }
        auto maps = read_maps(pid);
        for (const MapsEntry& e : maps ? *maps : std::vector<MapsEntry>{}) {
            bool same = !e.shared && e.device == file.names.mapped_device &&
                        e.inode == file.names.mapped_inode;
            if (same) showing.push_back(e.range);
        }
        for (Range range : showing) {
            space.for_each(range, [&](Mapping& m) {
                if (!m.file || m.shared) return;
                m.follows = file.object;
                m.digest.reset();
            });
            home_.acceptors.tell(pid, Following{range});
        }
    }
}

void SharedMemory::resize(SharedFile& file, uint64_t pages) {
    if (pages == home_.pager.shared.pages(file.object)) return;
    home_.pager.shared.resize(file.object, pages);
    home_.acceptors.each([&](RemoteNode& node) { tell_resized(node.link, file.object, pages); });
}

void SharedMemory::note_size(SharedFile& file) {
    struct stat st {};
    if (!file.path || fstat(file.path.get(), &st) != 0) return;
    resize(file, pages_of(static_cast<uint64_t>(st.st_size)));
}

SharedUse SharedMemory::shared_use(HomeProcess& process, uint32_t number,
                                   const SyscallArguments& args) {
    SharedUse use;
    const Row* row = files_.empty() ? nullptr : find_row(number);
    if (!row) return use;
    use.modifies = row->has(Trait::modifies_files);
    bool all = number == SYS_execve || number == SYS_execveat || number == SYS_truncate;
    if (opens_truncating(number, args)) all = use.modifies = true;
    if (all) {
        for (const auto& [object, f] : files_) use.files.push_back(object);
        return use;
    }
    if (number == SYS_msync || number == SYS_madvise) {
        Range range{{args[0]}, Address{args[0] + args[1]}.page_end()};
        process.fragment->space.overlapping(range, [&](const Mapping& m) {
            if (m.shared) use.files.push_back(m.object);
        });
        return use;
    }
    for (size_t i = 0; i < args.size(); i++) {
        int fd = static_cast<int>(args[i]);
        struct stat st {};
        if (row->arguments[i].kind != Kind::fd || fd < 0) continue;
        if (stat(link_of(process.pid, fd).c_str(), &st) != 0) continue;
        for (const auto& [object, f] : files_) {
            bool same = f.names.device == st.st_dev && f.names.inode == st.st_ino;
            if (same && (use.modifies || f.written)) use.files.push_back(object);
        }
    }
    return use;
}

SharedUse SharedMemory::use_of_everything() const {
    SharedUse use;
    use.modifies = true;
    for (const auto& [object, f] : files_) use.files.push_back(object);
    return use;
}

Task<void> SharedMemory::before_use(const SharedUse& use) {
    if (use.files.empty() || !home_.acceptors.reachable()) co_return;
    std::vector<ObjectId> objects = use.files;
    co_await home_.pager.shared.collect(std::move(objects),
                                        use.modifies ? Access::write : Access::read);
}

Task<void> SharedMemory::after_use(const SharedUse& use) {
    if (use.files.empty() || !use.modifies || !home_.acceptors.reachable()) co_return;
    std::vector<ObjectId> objects = use.files;
    co_await home_.pager.shared.collect(std::move(objects), Access::write);
    for (auto& [object, f] : files_) {
        if (std::ranges::find(use.files, object) != use.files.end()) note_size(f);
    }
}

// Fetches what was written in this range, so that it is in the file before the mapping goes away.
Task<void> SharedMemory::save_shared(const AddressSpace& space, Range range) {
    SharedUse use;
    space.overlapping(range, [&](const Mapping& m) {
        if (m.shared && (m.prot & PROT_WRITE)) use.files.push_back(m.object);
    });
    co_await before_use(use);
}

Task<void> SharedMemory::save_shared(HomeProcess& process) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    if (fragment) co_await save_shared(fragment->space, everything);
}

bool SharedMemory::anyone_writes_shared() const {
    return std::ranges::any_of(files_, [](const auto& f) { return f.second.written; });
}

// From now on home's pages may be out of date, so no child may use them without being split.
void SharedMemory::note_writer(SharedFile& file) {
    if (std::exchange(file.written, true)) return;
    if (file.is_named) let_private_follow(file);
    home_.children.split_children_now();
    home_.contended_memory.choose_node(file);
}

void SharedMemory::note_protection(const Mapping& m) {
    auto it = m.shared && (m.prot & PROT_WRITE) ? files_.find(m.object) : files_.end();
    if (it != files_.end()) note_writer(it->second);
}

// These mappings are gone, as the acceptors know already: forgets their shared objects, unless
// other mappings show them.
void SharedMemory::forget_unseen(const std::vector<Mapping>& gone) {
    for (const Mapping& m : gone) {
        auto shows = [&](const auto& entry) {
            const HomeProcess& process = *entry.second;
            return (process.fragment && process.fragment->space.shows(m.object)) ||
                   (process.inherits && process.inherits->space.shows(m.object));
        };
        if (!m.shared || std::ranges::any_of(home_.processes, shows)) continue;
        auto file = files_.find(m.object);
        if (file == files_.end()) continue;
        if (home_.contended_memory.external_sharers()) {
            home_.contended_memory.external_sharers()->forget(file->second.watched);
        }
        const SharedIdentity& identity = file->second.identity;
        const std::pair inode{identity.mapped_device, identity.mapped_inode};
        auto [named, end] = by_inode_.equal_range(inode);
        while (named != end && named->second != m.object) ++named;
        if (named != end) by_inode_.erase(named);
        files_.erase(file);
        home_.pager.shared.erase(m.object);
        home_.acceptors.each([&](RemoteNode& node) { tell_forgotten(node.link, m.object); });
    }
}

// The process has ended, or begins a new image.
void SharedMemory::forget_memory(HomeProcess& process) {
    forget_unseen(home_.pager.objects.forget(process.fragment->space));
    process.copied_files.clear();
}

// shmat: like a file mapping, but home's kernel chooses the address.
Task<void> SharedMemory::attach_for(HomeProcess& process, HomeThread& thread, Frame frame) {
    auto args = frame->session().getCall().getArgs();
    std::shared_ptr<Fragment> fragment = process.fragment;
    Notification n{};
    n.number = SYS_shmat;
    for (unsigned i = 0; i < 3; i++) n.args[i] = args[i];
    std::shared_ptr<StubThread> stub = thread.stub;
    const int64_t refused = co_await home_.memory_calls.refusal(process, *stub, n, thread.tid);
    if (stub->dead()) co_return;
    if (refused != 0) {
        home_.calls.reply(thread, refused);
        co_return;
    }
    int64_t result = co_await stub->call(SYS_shmat, args[0], args[1], args[2]);
    if (result >= 0 || result < -4095) {
        auto guard = co_await home_.metadata.lock();
        if (stub->dead()) co_return;
        uint64_t given[]{args[0], args[1], args[2]};
        result = co_await place_elsewhere(*fragment, *stub, SYS_shmat, given, result);
        if (stub->dead()) co_return;
        if (result >= 0) co_await note_attached(process, {static_cast<uint64_t>(result)});
        guard.release();
        co_await home_.contended_memory.meet_external_sharers(false);
    }
    if (!stub->dead()) home_.calls.reply(thread, result);
}

// remap_file_pages: the kernel has made a mapping of its own for the range.
Task<void> SharedMemory::note_remapped(HomeProcess& process, Range range) {
    Mapping* old = process.fragment->space.find(range.begin);
    if (old) co_await map_shared(process, range.begin, range.size(), old->prot);
}

Task<void> SharedMemory::note_attached(HomeProcess& process, Address at) {
    auto shown = mapping_at(process.pid, at);
    if (!shown || shown->range.begin != at) co_return;
    co_await map_shared(process, at, shown->range.size(), shown->prot);
    home_.layouts.changes.lock_new(*process.fragment, shown->range, false);
}

}  // namespace gpr::home
