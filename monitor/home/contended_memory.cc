#include "monitor/home/contended_memory.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "monitor/home/forwarded_call.h"
#include "monitor/home/home.h"
#include "monitor/home/loans.h"
#include "monitor/home/shared_memory.h"
#include "monitor/node/address_change.h"
#include "monitor/node/passed_fds.h"

namespace gpr::home {

namespace {

// Each needs an inotify(7) watch, of which each user has only so many.
constexpr size_t most_made = 1024;

std::string link_of(pid_t pid, int fd) { return fmt::format("/proc/{}/fd/{}", pid, fd); }

// The process that made the other end of the socket; 0 if unknown.
pid_t peer_of(pid_t pid, int fd) {
    Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    Fd socket(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), fd, 0)));
    ucred peer{};
    socklen_t size = sizeof peer;
    getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
    return peer.pid;
}

}  // namespace

ExternalSharers& ContendedMemory::watching() {
    if (!external_sharers_) {
        external_sharers_ = std::make_unique<ExternalSharers>(
            home_.loop, [this] { spawn(meet_external_sharers(false)); });
    }
    return *external_sharers_;
}

// memfd_create has just made this file. Another process can only get it if it is passed, or by
// opening it through /proc; so it is watched instead of searching all processes for it, which would
// be slow for a program that makes hundreds, such as a browser.
void ContendedMemory::note_made(HomeProcess& process, int fd) {
    if (home_.policy.mixed() || made_.size() >= most_made) return;
    Fd path(open(link_of(process.pid, fd).c_str(), O_PATH | O_CLOEXEC));
    struct stat st {};
    if (!path || fstat(path.get(), &st) != 0) return;
    auto watched = watching().watch(path, "/memfd:", 0);
    if (watched.id()) made_[{st.st_dev, st.st_ino}] = watched;
}

void ContendedMemory::forget_made(const ExternalSharers::News& news) {
    std::erase_if(made_, [&](const auto& entry) {
        uint64_t id = *entry.second.id();
        if (news.ended.contains(id)) return true;
        if (!news.opened.contains(id) || news.by_us) return false;
        external_sharers_->forget(entry.second);
        return true;
    });
}

// For a file that has just been mapped for the first time.
void ContendedMemory::begin_watching(SharedFile& file, const std::string& mapped_as) {
    if (home_.policy.mixed()) return;
    watching();
    if (file.kernel_uses) choose_node(file);
    // Memory without a name, or with one that no external sharer can use, needs no search.
    const SharedIdentity& identity = file.identity;
    bool elsewhere = identity.is_segment && identity.ipc_namespace != ipc_namespace_of(getpid());
    file.looked = file.kernel_uses || elsewhere || mapped_as.starts_with("/dev/zero");
    if (file.looked) return;
    file.given = given_.contains({file.names.device, file.names.inode});
    if (auto made = made_.extract({file.names.device, file.names.inode})) {
        file.watched = made.mapped();
        file.looked = true;
        external_sharers_->want_look();
    } else {
        all_looked_for_ = false;
        file.watched = external_sharers_->watch(file.path, mapped_as, file.names.mapped_inode);
    }
    spawn(meet_external_sharers(false));
}

Task<void> ContendedMemory::look_for_external_sharers() {
    std::vector<FileNames> names;
    std::vector<ObjectId> objects;
    for (auto& [object, file] : home_.shared_memory.files()) {
        names.push_back(file.names);
        objects.push_back(object);
        file.looked = true;
    }
    all_looked_for_ = true;
    using Whose = ExternalSharers::Whose;
    auto whose = [this](pid_t pid) {
        if (pid == getpid()) return Whose::sessions;
        const HomeProcess* process = home_.find_process(pid);
        auto thread = home_.threads.find(pid);
        if (!process && thread != home_.threads.end()) process = thread->second->process;
        if (!process) return Whose::unknown;
        return process->runs_apart() ? Whose::others : Whose::sessions;
    };
    auto found = co_await external_sharers_->look(std::move(names), whose);
    for (size_t i = 0; found && i < objects.size(); i++) {
        auto file = home_.shared_memory.files().find(objects[i]);
        if (file == home_.shared_memory.files().end()) continue;
        file->second.outside = found->at(i);
        choose_node(file->second);
    }
}

// If others use the file, the program's threads use it at home, and the pages that acceptors have
// of it come back. This lasts for as long as the file is mapped: it could be undone only while no
// thread uses it here or is on its way. A thread that has come home for it sees all shared memory
// of its process as it is here, so all of that must be used at home as well.
void ContendedMemory::choose_node(SharedFile& file) {
    if (!external_sharers_) return;
    if (file.written && file.watched.id()) home_.pager.shared.expect_writers(file.object);
    if (home_.pager.shared.is_used_at_home(file.object)) return;
    auto brings_home = [&](const AddressSpace& space, bool has_vfork_children) {
        return space.shows(file.object) &&
               (has_vfork_children ||
                std::ranges::any_of(home_.pager.shared.used_at_home(),
                                    [&](ObjectId other) { return space.shows(other); }));
    };
    bool follows = std::ranges::any_of(home_.processes, [&](const auto& entry) {
        const HomeProcess& process = *entry.second;
        return (process.fragment &&
                brings_home(process.fragment->space, process.has_vfork_children)) ||
               (process.inherits && brings_home(process.inherits->space, false));
    });
    if (!file.is_contended() && !follows) return;
    spdlog::debug("shared memory {:#x} is used at home{}", file.object,
                  follows ? ", as other memory of its processes" : "");
    home_.pager.shared.keep_home(file.object);
    home_.acceptors.each([&](RemoteNode& node) { tell_used_at_home(node.link, file.object); });
    touched_.insert(file.object);
    home_.loans.note_loan(file.object);
    for (auto& [object, other] : home_.shared_memory.files()) choose_node(other);
}

// The acceptor requests pages of the object.
void ContendedMemory::note_request(ObjectId object) {
    const bool at_home = home_.pager.shared.is_used_at_home(object);
    if (at_home) home_.loans.note_loan(object);
    auto file = home_.shared_memory.files().find(object);
    if (file == home_.shared_memory.files().end()) return;
    // Nobody outside can open a file without a name; requests for it matter only if it is at home.
    if (at_home || file->second.watched.may_have_name()) touched_.insert(object);
}

// To be called before and after calls by which the program may communicate, so that it and the
// other side see what each has written to shared memory. tells: the other side may learn a file's
// name from the call, and must find all that the program has written to the file.
Task<void> ContendedMemory::meet_external_sharers(bool tells) {
    if (!external_sharers_) co_return;
    auto turn = co_await external_sharers_->turn();
    ExternalSharers::News news = external_sharers_->take_news();
    forget_made(news);
    bool is_urgent = false;
    const bool any_news = !news.written.empty() || !news.opened.empty();
    std::vector<ObjectId> stale;  // acceptors' copies are out of date
    for (auto& [object, file] : home_.shared_memory.files()) {
        if (all_looked_for_ && !any_news) break;
        auto id = file.watched.id();
        if (id && news.written.contains(*id)) {
            home_.shared_memory.note_size(file);
            if (!home_.pager.shared.is_used_at_home(object)) stale.push_back(object);
        }
        is_urgent |= id && file.written && news.opened.contains(*id) && !news.by_us;
        is_urgent |= !file.looked;
    }
    bool is_due = news.look_due || !news.opened.empty();
    if (is_urgent) {
        co_await look_for_external_sharers();
    } else if (is_due && external_sharers_->may_look()) {
        spawn(look_for_external_sharers());
    }
    std::vector<ObjectId> contended, told;
    std::erase_if(touched_, [&](ObjectId object) {
        auto found = home_.shared_memory.files().find(object);
        if (found == home_.shared_memory.files().end()) return true;
        const SharedFile& file = found->second;
        bool at_home = home_.pager.shared.is_used_at_home(object);
        if (!at_home && !(tells && file.written && file.watched.has_name(file.path))) return false;
        (at_home ? contended : told).push_back(object);
        return true;
    });
    contended.insert(contended.end(), stale.begin(), stale.end());
    if (!contended.empty() && home_.acceptors.reachable()) {
        co_await home_.pager.shared.collect(std::move(contended), Access::write);
    }
    if (!told.empty() && home_.acceptors.reachable()) {
        co_await home_.pager.shared.collect(std::move(told), Access::read);
    }
}

// The program is about to send a message. The receiver may use the descriptors in it at once.
void ContendedMemory::note_given(HomeProcess& process, const ForwardedCall& call) {
    const uint64_t* args = call.made.args;
    bool several = call.number == SYS_sendmmsg;
    if (home_.policy.mixed() || (call.number != SYS_sendmsg && !several)) return;
    uint64_t count = several ? std::min<uint64_t>(args[2], UIO_MAXIOV) : 1;
    bool to_ours = false, asked = false;
    for (uint64_t i = 0; i < count; i++) {
        mmsghdr message{};
        size_t size = several ? sizeof message : sizeof message.msg_hdr;
        auto header = call.bytes(args[1] + i * size, size);
        header.read(0, std::as_writable_bytes(std::span(&message, 1)).first(header.size()));
        const msghdr& m = message.msg_hdr;
        auto control = call.bytes(reinterpret_cast<uint64_t>(m.msg_control), m.msg_controllen);
        auto told = control.bytes(0, control.size());
        for (int fd : passed_fds(told)) {
            if (!std::exchange(asked, true)) {
                const HomeProcess* peer =
                    home_.find_process(peer_of(process.pid, static_cast<int>(args[0])));
                to_ours = peer && !peer->runs_apart();
            }
            struct stat st {};
            bool found = stat(link_of(process.pid, fd).c_str(), &st) == 0;
            if (to_ours || !found || !S_ISREG(st.st_mode)) continue;
            given_.insert({st.st_dev, st.st_ino});
            for (auto& [object, file] : home_.shared_memory.files()) {
                if (file.names.device != st.st_dev || file.names.inode != st.st_ino) continue;
                file.given = true;
                choose_node(file);
            }
        }
    }
}

namespace {
bool has_open(pid_t pid, const FileNames& file) {
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", pid), error)) {
        struct stat st {};
        const bool known = stat(entry.path().c_str(), &st) == 0;
        if (known && st.st_dev == file.device && st.st_ino == file.inode) return true;
    }
    return false;
}
}  // namespace

// The sharer is in the session, but its memory is not coherent with that of the others: what it
// maps, or has a descriptor of, is used at home.
void ContendedMemory::share_with(const HomeProcess& sharer) {
    if (home_.shared_memory.files().empty() || home_.policy.mixed()) return;
    auto maps = read_maps(sharer.pid);
    if (!maps) return;
    for (auto& [object, file] : home_.shared_memory.files()) {
        bool shows = std::ranges::any_of(*maps, [&](const MapsEntry& e) {
            return e.shared && e.inode == file.names.mapped_inode;
        });
        if (!shows && !has_open(sharer.pid, file.names)) continue;
        file.given = true;
        choose_node(file);
    }
}

// Before the process, which is split, uses what it has just mapped: processes of the session that
// rest, or stay at home, may have it, too. A file is also looked for by its name, but what has no
// name that others could open is theirs only if they have it already.
void ContendedMemory::meet_those_at_rest(const HomeProcess& process) {
    if (!external_sharers_ || home_.policy.mixed()) return;
    std::vector<SharedFile*> files;
    for (auto& [object, file] : home_.shared_memory.files()) {
        const bool mapped = process.fragment->space.shows(object);
        if (mapped && !home_.pager.shared.is_used_at_home(object)) files.push_back(&file);
    }
    for (const auto& [pid, other] : home_.processes) {
        if (files.empty() || !other->runs_apart() || other->finished) continue;
        auto maps = read_maps(pid);
        for (const MapsEntry& e : maps ? *maps : std::vector<MapsEntry>{}) {
            for (SharedFile* file : files) {
                const FileNames& names = file->names;
                if (!e.shared || e.inode != names.mapped_inode || e.device != names.mapped_device)
                    continue;
                if (file->given || !(file->written || may_be_written(e))) continue;
                file->given = true;
                choose_node(*file);
            }
        }
    }
}

}  // namespace gpr::home
