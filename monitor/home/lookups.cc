#include "monitor/home/lookups.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "monitor/home/delegations.h"
#include "monitor/home/forwarded_call.h"
#include "monitor/home/home.h"
#include "monitor/home/process_identity.h"
#include "monitor/home/shared_memory.h"

namespace gpr::home {

namespace {

using Kind = LookupCall::Kind;

constexpr size_t most_threads = 256;  // of a process whose threads are compared
// struct iovec-like head of a piece in an answer, see gather().
constexpr size_t piece_head = 2 * sizeof(uint32_t);

// Which argument points to the room for the answer.
size_t place_of_status(uint32_t number) {
    if (number == SYS_statx) return 4;
    return number == SYS_newfstatat ? 2 : 1;
}

// Whether the session may have mapped it as shared memory: it is in use then, and an open by us
// would pass for one by somebody outside.
bool is_shared(Home& home, int file) {
    constexpr size_t most_compared = 64;
    const auto& all = home.shared_memory.files();
    if (all.size() > most_compared) return true;
    const auto place = PathWalks::place_of(file);
    return !place || std::ranges::any_of(all, [&](const auto& entry) {
        const SharedIdentity& identity = entry.second.identity;
        return identity.device == place->device && identity.inode == place->inode;
    });
}

LookupSequences::Place place_of(const LookupCall& call) {
    const std::string_view directory = directory_part(call.path);
    return {std::string(directory), std::string(call.path.substr(directory.size()))};
}

template <class Status>
std::vector<std::byte> bytes_of(const Status& status) {
    const auto bytes = std::as_bytes(std::span(&status, 1));
    return {bytes.begin(), bytes.end()};
}

// What the call tells of this file, a struct stat or statx; empty: there is an error.
std::vector<std::byte> status_of(int file, const LookupCall& call) {
    if (call.kind == Kind::extended_status) {
        struct statx its {};
        const int flags = static_cast<int>(call.flags) | AT_EMPTY_PATH;
        if (statx(file, "", flags, call.mask, &its) != 0) return {};
        return bytes_of(its);
    }
    struct stat its {};
    if (syscall(SYS_newfstatat, file, "", &its, AT_EMPTY_PATH) != 0) return {};
    return bytes_of(its);
}

// Without waiting for a disk.
Fd open_cached(int directory, const std::string& name) {
    open_how how{};
    how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    how.resolve = RESOLVE_CACHED;
    return Fd(static_cast<int>(syscall(SYS_openat2, directory, name.c_str(), &how, sizeof how)));
}

}  // namespace

void OfferedLookup::put(wire::Lookup::Builder to) const {
    auto list = to.initIds(static_cast<unsigned>(ids.size()));
    for (unsigned i = 0; i < list.size(); i++) list.set(i, ids[i]);
    to.setAbsent(absent);
    to.setSpare(spare);
    to.setSerial(serial);
    to.setCommonIds(static_cast<uint32_t>(common_ids));
    to.setIsLink(is_link);
    auto data = [](const auto& bytes) {
        return capnp::Data::Reader(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    };
    auto ahead = to.initOthers(static_cast<unsigned>(others.size()));
    for (unsigned i = 0; i < ahead.size(); i++) {
        const Ahead& one = others[i];
        ahead[i].setDirectory(data(one.directory));
        ahead[i].setName(data(one.name));
        ahead[i].setStatus(data(one.status));
        ahead[i].setError(static_cast<uint16_t>(one.error));
        auto its = ahead[i].initIds(static_cast<unsigned>(one.ids.size()));
        for (unsigned k = 0; k < its.size(); k++) its.set(k, one.ids[k]);
    }
}

Lookups::Lookups(Home& home)
    : home_(home),
      mounts_(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)),
      mounts_in_loop_(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)) {
    is_off_ = names_.fd() < 0 || !mounts_ || !mounts_in_loop_;
    if (is_off_) return;
    name_watch_ = home.loop.watch(names_.fd(), POLLIN, [this](uint32_t) { read_changes(); });
    mount_watch_ = home.loop.watch(mounts_in_loop_.get(), POLLPRI, [this](uint32_t) { clear(); });
}

void Lookups::look_for_changes() {
    if (!is_off_ && !names_.empty()) read_changes();
}

void Lookups::read_changes() {
    std::array<pollfd, 2> news{{{mounts_.get(), POLLPRI, 0}, {names_.fd(), POLLIN, 0}}};
    if (poll(news.data(), news.size(), 0) <= 0) return;
    if (news[0].revents != 0) clear();
    tell(names_.take_gone());
}

void Lookups::tell(const WatchedNames::Gone& gone) {
    if (gone.all) {
        walks_.forget();
        unopened_.forget();
        listings_.forget_all();
        contexts_.clear();
    }
    if (gone.none()) return;
    FrameBuilder frame;
    auto message = frame.session().initLookupsGone();
    message.setAll(gone.all);
    message.setSerial(++serial_);
    auto list = message.initIds(static_cast<unsigned>(gone.ids.size()));
    for (unsigned i = 0; i < list.size(); i++) list.set(i, gone.ids[i]);
    home_.acceptors.send(frame);
}

void Lookups::clear() {
    walks_.forget();
    if (names_.empty()) return;
    names_.clear();
    tell({true, {}});
}

void Lookups::forget(pid_t pid) {
    auto it = contexts_.find(pid);
    if (it == contexts_.end()) return;
    const uint32_t id = it->second.id;
    contexts_.erase(it);
    listings_.forget(id);
    sequences_.forget(id);
    tell(names_.drop(id));
}

void Lookups::before_call(pid_t pid, uint32_t number, const uint64_t* args) {
    switch (on_lookups(number, args)) {
        case OnLookups::nothing: return;
        case OnLookups::forgets: forget(pid); return;
        case OnLookups::forgets_all: clear(); return;
    }
}

bool Lookups::changes_context(pid_t pid) const {
    return std::ranges::any_of(home_.delegations.served(), [pid](const auto& call) {
        const OnLookups what = on_lookups(call.number, call.args.data());
        return what == OnLookups::forgets_all || (what != OnLookups::nothing && call.pid == pid);
    });
}

bool Lookups::sees_what_we_see(const HomeProcess& process) const {
    const pid_t pid = process.pid;
    if (!shares_namespaces(pid, {"mnt", "user"})) return false;
    const std::string folder = "/proc/" + std::to_string(pid);
    const Fd its(::open((folder + "/root").c_str(), O_PATH | O_CLOEXEC));
    const Fd ours(::open("/", O_PATH | O_CLOEXEC));
    const auto root = PathWalks::place_of(ours.get());
    if (!root || root != PathWalks::place_of(its.get())) return false;
    const bool shared = std::ranges::any_of(home_.processes, [pid](const auto& other) {
        return other.first != pid && share_fs(pid, other.first);
    });
    if (shared || process.threads.size() > most_threads) return false;
    std::string identity;
    for (const auto& [tid, thread] : process.threads) {
        if (thread->helper) continue;
        if (process.threads.size() == 1) break;
        const std::string this_one = identity_of(pid, tid);
        if (this_one.empty() || (!identity.empty() && this_one != identity)) return false;
        identity = this_one;
        if (tid != pid && !share_fs(pid, tid)) return false;
    }
    return true;
}

Lookups::Context Lookups::context_of(HomeProcess& process) {
    if (changes_context(process.pid)) return {};
    auto it = contexts_.find(process.pid);
    if (it != contexts_.end()) return it->second;
    Context context;
    if (sees_what_we_see(process)) context = {names_.make_id(), may_what_we_may(process.pid)};
    contexts_[process.pid] = context;
    return context;
}

std::unique_ptr<Lookups::Asked> Lookups::ask(HomeProcess& process, HomeThread& thread,
                                             const ForwardedCall& call) {
    if (is_off_ || !call.may_remember || !call.marshalled) return nullptr;
    const auto lookup = lookup_of(*call.marshalled);
    if (!lookup || !Delegations::all_at(process, thread)) return nullptr;
    if (names_.is_full()) clear();
    auto asked = std::make_unique<Asked>();
    asked->call = *lookup;
    const Context context = context_of(process);
    asked->context = context.id;
    asked->as_us = context.as_us;
    if (asked->context == 0) return nullptr;
    const bool from_root = lookup->path.starts_with('/');
    if (!from_root) {
        asked->start = {"/proc/" + std::to_string(process.pid) + "/cwd", asked->context};
    }
    if (lookup->kind == Kind::directory) {
        asked->way = walks_.to_start(asked->start);
        return asked->way.error != 0 ? nullptr : std::move(asked);
    }
    auto parts = PathWalks::parts(lookup->path);
    asked->name = parts.back();
    parts.pop_back();
    asked->directory = PathWalks::join(parts);
    asked->way = walks_.to_directory(asked->start, asked->directory);
    if (asked->way.error < 0) return nullptr;
    if (asked->way.error == 0) asked->name_id = names_.id_of(asked->way.watch, asked->name);
    return asked;
}

// Without waiting for a disk. File systems in memory do not keep what is absent in the kernel's
// cache.
Fd Lookups::open_at_once(int directory, const std::string& name) {
    Fd file = open_cached(directory, name);
    if (file || errno != EAGAIN) return file;
    const auto seen = walks_.mounts.file(directory);
    if (seen && seen->in_memory) {
        return Fd(openat(directory, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    }
    errno = EAGAIN;
    return {};
}

bool Lookups::make(Asked& asked, pid_t pid, ForwardedCall& call) {
    const Kind kind = asked.call.kind;
    if (!asked.as_us || !(tells_status(asked.call) || kind == Kind::open)) return false;
    // Unless it has no descriptor left, which an open would tell first.
    auto is_absent = [&](int error) {
        if (kind == Kind::open) asked.spare = spare_descriptors(pid);
        asked.made = kind != Kind::open || asked.spare != 0;
        if (asked.made) call.made.result = -error;
        return asked.made;
    };
    look_for_changes();
    auto holds = [this](uint32_t id) { return names_.holds(id); };
    const bool still = holds(asked.context) && std::ranges::all_of(asked.way.ids, holds);
    if (!still || changes_context(pid)) return false;
    if (asked.way.error != 0) return is_absent(asked.way.error);
    const Fd directory = PathWalks::open(asked.start, asked.directory, O_DIRECTORY);
    if (!directory) return false;
    const Fd file = open_at_once(directory.get(), asked.name);
    if (!file && errno == ENOENT) return is_absent(ENOENT);
    // Of a file system that the program serves we would wait for ourselves.
    const auto seen = file ? walks_.mounts.file(file.get()) : std::nullopt;
    if (!seen || kind == Kind::open || (S_ISLNK(seen->mode) && asked.call.follows)) return false;
    const std::vector<std::byte> status = status_of(file.get(), asked.call);
    const uint64_t at = call.made.args[place_of_status(call.number)];
    const HostileMemory room = call.bytes(at, status.size());
    if (status.empty() || room.size() != status.size()) return false;
    room.write(0, status);
    call.made.result = 0;
    asked.made = true;
    return true;
}

// The directory is watched, so what is not there now was not there during the call, either.
bool Lookups::find_nothing(const Asked& asked, int64_t result) const {
    if (asked.way.error != 0) return result == -asked.way.error;
    if (result != -ENOENT || asked.made) return result == -ENOENT;
    const Fd there = PathWalks::open(asked.start, asked.directory + "/" + asked.name, O_NOFOLLOW);
    return !there && errno == ENOENT;
}

// Whether the answer depends on nothing but what the path leads to.
bool Lookups::find_name(const Asked& asked) {
    const std::string path = asked.directory + "/" + asked.name;
    const Fd file = PathWalks::open(asked.start, path, O_NOFOLLOW);
    const auto seen = file ? walks_.mounts.file(file.get()) : std::nullopt;
    if (!seen) return false;
    const bool is_link = S_ISLNK(seen->mode);
    if (asked.call.kind == Kind::link) return is_link;
    return asked.call.flags == F_OK && (!is_link || !asked.call.follows);
}

// ids gets those of what the status depends on.
bool Lookups::watch_status(const Asked& asked, int file, const LocalMounts::File& seen,
                           std::vector<uint32_t>& ids) {
    if (S_ISREG(seen.mode)) {
        const bool may_open = asked.may_open && !is_shared(home_, file);
        const auto id = may_open ? unopened_.watch(file, seen) : std::nullopt;
        if (id) ids.push_back(*id);
        return id.has_value();
    }
    struct stat status {};
    const bool is_link = S_ISLNK(seen.mode);
    if (!S_ISDIR(seen.mode) && (!is_link || asked.call.follows)) return false;
    if (fstat(file, &status) != 0) return false;
    const bool settled = is_settled(seen, status);
    int watch = -1;
    if (is_link) {
        const Fd directory = PathWalks::open(asked.start, asked.directory, O_DIRECTORY);
        if (settled && directory) watch = names_.watch_link(directory.get(), asked.name);
    } else {
        watch = names_.watch(file, !settled);
    }
    if (watch < 0) return false;
    ids.push_back(names_.id_of(watch, WatchedNames::itself));
    ids.push_back(names_.id_of(watch, WatchedNames::anything));
    return true;
}

bool Lookups::find_status(const Asked& asked, std::span<const std::byte> out,
                          OfferedLookup& offered) {
    const std::string path = asked.directory + "/" + asked.name;
    const Fd file = PathWalks::open(asked.start, path, O_NOFOLLOW);
    const auto seen = file ? walks_.mounts.file(file.get()) : std::nullopt;
    if (!seen || out.size() < piece_head) return false;
    const bool is_so =
        watch_status(asked, file.get(), *seen, offered.ids) &&
        std::ranges::equal(status_of(file.get(), asked.call), out.subspan(piece_head));
    offered.is_link = S_ISLNK(seen->mode);
    if (is_so && S_ISREG(seen->mode)) find_listed(asked, offered);
    return is_so;
}

// Of those that the program has found when it listed the directory.
void Lookups::find_listed(const Asked& asked, OfferedLookup& offered) {
    const bool holds =
        std::ranges::all_of(asked.way.ids, [&](uint32_t id) { return names_.holds(id); });
    const Fd directory = PathWalks::open(asked.start, asked.directory, O_DIRECTORY);
    const auto place = PathWalks::place_of(directory.get());
    if (!holds || !place) return;
    for (std::string& name : listings_.next(*place, asked.context, asked.name)) {
        const Fd file = open_cached(directory.get(), name);
        const auto seen = file ? walks_.mounts.file(file.get()) : std::nullopt;
        OfferedLookup::Ahead one;
        const bool is_file = seen && S_ISREG(seen->mode);
        if (!is_file || !watch_status(asked, file.get(), *seen, one.ids)) continue;
        one.ids.push_back(names_.id_of(asked.way.watch, name));
        one.status = status_of(file.get(), asked.call);
        one.name = std::move(name);
        if (!one.status.empty()) offered.others.push_back(std::move(one));
    }
}

// What programs have looked up next elsewhere.
void Lookups::foretell(const Asked& asked, OfferedLookup& offered) {
    const LookupSequences::Place place = place_of(asked.call);
    for (const LookupSequences::Place& next : sequences_.after(place, offered.absent)) {
        const bool is_same = next.directory == place.directory;
        // No directory means that of the call.
        if (next.directory.empty() && !is_same) return;
        if (next.directory.starts_with('/') != asked.call.path.starts_with('/')) return;
        const std::string path = PathWalks::join(PathWalks::parts(next.directory));
        const PathWalks::Way way = is_same ? asked.way : walks_.to_directory(asked.start, path);
        if (way.error < 0) return;
        OfferedLookup::Ahead one;
        one.name = next.name;
        if (!is_same) {
            one.directory = next.directory;
            one.ids = way.ids;
            one.ids.push_back(asked.context);
        }
        one.error = way.error;
        if (way.error == 0) {
            one.ids.push_back(names_.id_of(way.watch, next.name));
            if (!look_ahead(asked, path, one)) {
                if (one.error == EAGAIN) continue;  // it is not in the kernel's cache
                return;
            }
        }
        const bool ends = one.error == 0 && !is_same;
        offered.others.push_back(std::move(one));
        sequences_.note_told(asked.context, next);
        if (ends) return;
    }
}

// directory: there is such a directory, and it is watched. False: it cannot be told.
bool Lookups::look_ahead(const Asked& asked, const std::string& directory,
                         OfferedLookup::Ahead& one) {
    const Fd folder = PathWalks::open(asked.start, directory, O_DIRECTORY);
    const Fd file = folder ? open_at_once(folder.get(), one.name) : Fd();
    if (!file) {
        one.error = errno;
        return folder && one.error == ENOENT;
    }
    const auto seen = walks_.mounts.file(file.get());
    if (!tells_status(asked.call) || !seen || S_ISLNK(seen->mode)) return false;
    if (!watch_status(asked, file.get(), *seen, one.ids)) return false;
    one.status = status_of(file.get(), asked.call);
    return !one.status.empty();
}

void Lookups::note_listed(const HomeProcess& process, const ForwardedCall& call,
                          std::span<const std::byte> out) {
    const int64_t size = call.made.result;
    if (is_off_ || call.number != SYS_getdents64 || size <= 0) return;
    if (out.size() != piece_head + static_cast<size_t>(size)) return;
    const std::string link = "/proc/" + std::to_string(process.pid) + "/fd/" +
                             std::to_string(static_cast<int>(call.given[0]));
    const Fd directory(::open(link.c_str(), O_PATH | O_CLOEXEC));
    if (directory) note_listing(directory.get(), out.subspan(piece_head));
}

void Lookups::note_listing(int directory, std::span<const std::byte> entries) {
    if (is_off_ || !walks_.mounts.file(directory)) return;
    const auto place = PathWalks::place_of(directory);
    if (place) listings_.note(*place, entries);
}

bool Lookups::may_list(int directory) {
    const auto seen = walks_.mounts.file(directory);
    struct stat status {};
    struct statx about {};
    const bool known = seen && S_ISDIR(seen->mode) && fstat(directory, &status) == 0 &&
                       statx(directory, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &about) == 0;
    const uint64_t is_root = about.stx_attributes & STATX_ATTR_MOUNT_ROOT;
    return known && !is_root && is_settled(*seen, status);
}

std::unique_ptr<OfferedLookup> Lookups::offer(std::unique_ptr<Asked> asked, HomeProcess& process,
                                              HomeThread& thread, const ForwardedCall& call,
                                              std::span<const std::byte> out) {
    note_listed(process, call, out);
    if (!asked || !Delegations::all_at(process, thread)) return nullptr;
    if (!asked->made) look_for_changes();
    if (asked->call.kind != Kind::directory) sequences_.note(asked->context, place_of(asked->call));
    auto offered = std::make_unique<OfferedLookup>();
    std::vector<uint32_t>& ids = offered->ids;
    ids = asked->way.ids;
    ids.push_back(asked->context);
    offered->common_ids = ids.size();
    if (asked->name_id != 0) ids.push_back(asked->name_id);
    const int64_t result = call.made.result;
    const Kind kind = asked->call.kind;
    // This may send something, before which changes are looked for.
    asked->may_open =
        asked->as_us && tells_status(asked->call) && home_.delegations.nobody_notices();
    offered->absent = kind != Kind::directory && find_nothing(*asked, result);
    bool found = offered->absent;
    if (!found && asked->way.error == 0 && result >= 0) {
        switch (kind) {
            case Kind::status:
            case Kind::extended_status: found = find_status(*asked, out, *offered); break;
            case Kind::directory: found = true; break;
            case Kind::exists:
            case Kind::link: found = find_name(*asked); break;
            case Kind::open: break;
        }
    }
    auto holds = [this](uint32_t id) { return names_.holds(id); };
    if (!found || changes_context(process.pid) || !std::ranges::all_of(ids, holds)) return nullptr;
    if (asked->as_us) foretell(*asked, *offered);
    for (const uint32_t id : ids) names_.note_told(id);
    for (const OfferedLookup::Ahead& one : offered->others) {
        for (const uint32_t id : one.ids) names_.note_told(id);
    }
    if (kind == Kind::open) {
        offered->spare = asked->made ? asked->spare : spare_descriptors(process.pid);
    }
    offered->serial = serial_;
    return offered;
}

}  // namespace gpr::home
