#include "monitor/home/delegations.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <string>

#include "monitor/home/forwarded_call.h"
#include "monitor/home/home.h"
#include "monitor/home/lookups.h"
#include "monitor/home/open_file_watches.h"
#include "syscall/delegated_call.h"

namespace gpr::home {

namespace {

constexpr size_t most_files = 256;            // of the session
constexpr unsigned most_unlisted = 8;         // directories of a process, sent in vain
constexpr int64_t whole_content = 128 << 10;  // bytes; of a larger file its head is sent
constexpr int64_t head_content = 16 << 10;

// File systems of this host whose content only changes by this kernel, and whose leases see that.
// Not overlayfs: a shared mapping of its files keeps only the file below open.
bool is_local(int fd) {
    constexpr long xfs = 0x58465342;
    struct statfs of {};
    if (fstatfs(fd, &of) != 0) return false;
    const long types[] = {EXT4_SUPER_MAGIC, xfs, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, F2FS_SUPER_MAGIC};
    return std::ranges::find(types, of.f_type) != std::end(types);
}

bool is_plain_reader(int fd) {
    constexpr int large_file = 0100000;
    constexpr int harmless = O_NOATIME | O_NOFOLLOW | O_NONBLOCK | O_DIRECTORY | large_file;
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & ~harmless) == O_RDONLY;
}

// Who watches files sees reading, too, and home reads in advance.
bool will_watch(uint32_t number) {
    return number == SYS_inotify_init || number == SYS_inotify_init1 || number == SYS_fanotify_init;
}

// Opening a file breaks a lease on it, and listing a directory signals who wants to be notified.
bool will_notice(uint32_t number, const uint64_t* args) {
    if (number != SYS_fcntl) return will_watch(number);
    const auto command = static_cast<int>(args[1]);
    return command == F_SETLEASE || command == F_NOTIFY;
}

// In a way that neither a lease nor inotify tells.
bool changes_status(uint32_t number, const uint64_t* args) {
    return on_lookups(number, args) == OnLookups::forgets_all;
}

// From where the file begins. Empty: that would take until a disk has it, for which the shadow can
// wait.
std::vector<std::byte> read_cached(int fd, size_t wanted) {
    std::vector<std::byte> content(wanted);
    const iovec room{content.data(), content.size()};
    const ssize_t got = preadv2(fd, &room, 1, 0, RWF_NOWAIT);
    if (got != static_cast<ssize_t>(wanted)) content.clear();
    return content;
}

Fd descriptor_of(pid_t pid, int number) {
    const Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!process) return {};
    return Fd(static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), number, 0)));
}

}  // namespace

void OfferedFile::put(wire::Delegation::Builder to, FrameBuilder& frame) const {
    to.setId(id);
    to.setStatus({reinterpret_cast<const uint8_t*>(&status), sizeof status});
    to.setContent(static_cast<uint32_t>(content.size()));
    if (!content.empty()) frame.add_raw(content);
}

struct Delegations::Held {
    enum class State : uint8_t { prepared, spoilt, given, recalled };

    Held(OpenFileWatches& all, Fd its) : watched(all), file(std::move(its)) {}
    ~Held() {
        if (watch >= 0) watched.remove(watch);
        if (above >= 0) watched.remove(above);
        if (!leased) return;
        fcntl(file.get(), F_SETLEASE, F_UNLCK);
        fcntl(file.get(), F_SETOWN, 0);  // as the program left it
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    [[nodiscard]] bool holds() const { return !leased || fcntl(file.get(), F_GETLEASE) == F_RDLCK; }

    OpenFileWatches& watched;
    Fd file;  // the program's own open file
    uint64_t id = 0;
    NodeId node = directory_node;
    int watch = -1;
    int above = -1;       // of the directory above a directory
    bool leased = false;  // a regular file: always
    State state = State::prepared;
};

Delegations::Delegations(Home& home)
    : home_(home),
      sleepers_(home),
      watched_(std::make_unique<OpenFileWatches>()),
      changed_(home.loop) {
    sigset_t broken;
    sigemptyset(&broken);
    sigaddset(&broken, SIGIO);
    pthread_sigmask(SIG_BLOCK, &broken, nullptr);
    breaks_ = Fd(signalfd(-1, &broken, SFD_CLOEXEC | SFD_NONBLOCK));
    is_off_ = !breaks_ || watched_->fd() < 0;
    if (is_off_) return;
    break_watch_ = home.loop.watch(breaks_.get(), POLLIN, [this](uint32_t) { on_break(); });
    change_watch_ = home.loop.watch(watched_->fd(), POLLIN, [this](uint32_t) { recall_changed(); });
}

Delegations::~Delegations() = default;

// No thread has a watch yet that could have missed a read by then.
void Delegations::note_call_here(uint32_t number) {
    if (will_watch(number)) turn_off();
}

void Delegations::turn_off() {
    if (std::exchange(is_off_, true)) return;
    recall_held([](const Held&) { return true; });
}

bool Delegations::nobody_notices() {
    bool known = true;
    for (const auto& [pid, process] : home_.processes) {
        if (is_off_) return false;
        if (process->state != HomeProcess::State::split) continue;
        const FileWatchers::Verdict verdict = watchers_.of(pid);
        if (verdict == FileWatchers::Verdict::some) turn_off();
        known = known && verdict == FileWatchers::Verdict::none;
    }
    return known && !is_off_;
}

Task<void> Delegations::before_call(pid_t pid, uint32_t number, SyscallArguments args) {
    home_.lookups.before_call(pid, number, args.data());
    const bool notices = will_notice(number, args.data());
    is_off_ = is_off_ || notices;
    if (number == SYS_execve || number == SYS_execveat) unlisted_.erase(pid);
    const bool all = notices || changes_status(number, args.data());
    const bool of_anybody = all || number == SYS_pidfd_getfd;
    auto conflicts = [&](pid_t owner, int descriptor) {
        return all || ((of_anybody || owner == pid) && needs_back(number, args.data(), descriptor));
    };
    auto closes = [&] { return of_anybody ? !closing_.empty() : closing_.contains(pid); };
    while (recall_if(conflicts) || closes()) co_await changed_.wait();
}

Task<void> Delegations::open_again(StubThread& shadow, std::vector<gpr::Call>& call) {
    auto any = [](pid_t, int) { return true; };
    while (recall_if(any)) co_await changed_.wait();
    if (!shadow.dead()) co_await shadow.run_locked(call);
}

Task<void> Delegations::end_all(pid_t pid) {
    home_.lookups.forget(pid);
    sleepers_.forget(pid);
    auto is_its = [pid](pid_t owner, int) { return owner == pid; };
    while (recall_if(is_its) || closing_.contains(pid)) co_await changed_.wait();
}

// A file that is only being prepared is not given. Nothing may be erased here: this may be called
// while another recall is being sent.
void Delegations::recall(pid_t pid, int number, Held& held) {
    if (held.state == Held::State::prepared) held.state = Held::State::spoilt;
    if (held.state != Held::State::given) return;
    held.state = Held::State::recalled;
    FrameBuilder frame;
    auto wanted = frame.session().initFileReturn();
    wanted.setPid(pid);
    wanted.setNumber(number);
    wanted.setId(held.id);
    home_.acceptors.at(held.node).link.send(frame, Priority::urgent);
}

// Whether some of those have to come back first.
bool Delegations::recall_if(const std::function<bool(pid_t pid, int number)>& is_it) {
    bool awaits = false;
    for (auto& [pid, files] : files_) {
        for (auto& [number, held] : files) {
            if (!is_it(pid, number)) continue;
            recall(pid, number, *held);
            // While home lists a directory its offset is not the program's.
            const bool is_listed = !held->leased && held->state <= Held::State::spoilt;
            awaits = awaits || is_listed || held->state == Held::State::recalled;
        }
    }
    return awaits;
}

void Delegations::recall_held(const std::function<bool(const Held&)>& is_it) {
    for (auto& [pid, files] : files_) {
        for (auto& [number, held] : files) {
            if (is_it(*held)) recall(pid, number, *held);
        }
    }
}

// Somebody wants to write to a file. The kernel says only once that this is so of several.
void Delegations::on_break() {
    signalfd_siginfo taken{};
    while (::read(breaks_.get(), &taken, sizeof taken) > 0) {
    }
    recall_held([](const Held& held) { return !held.holds(); });
}

void Delegations::look_for_changes() {
    home_.lookups.look_for_changes();
    if (!watched_->empty()) recall_changed();
}

void Delegations::recall_changed() {
    const auto changes = watched_->take_changes();
    if (changes.empty()) return;
    auto has_changed = [&](const Held& held) {
        return std::ranges::any_of(changes, [&](const OpenFileWatches::Change& change) {
            return change.watch < 0 || change.watch == held.watch ||
                   (change.removes && change.watch == held.above);
        });
    };
    recall_held(has_changed);
}

void Delegations::on_return(wire::FileReturn::Reader back) {
    Held* held = find(back.getPid(), back.getNumber(), back.getId());
    if (!held) return;
    const bool closed = back.getOffset() == file_is_closed;
    if (!held->leased) note_listing(back.getPid(), closed || back.getOffset() != 0);
    if (!closed && back.getOffset() != offset_is_unchanged) {
        lseek(held->file.get(), static_cast<off_t>(back.getOffset()), SEEK_SET);
    }
    files_[back.getPid()].erase(back.getNumber());
    changed_.notify_all();
    if (closed) spawn(close(back.getPid(), back.getNumber()));
}

// Walks through a tree (fts(3)) duplicate each directory first: it comes back as it went.
void Delegations::note_listing(pid_t pid, bool listed) {
    unsigned& unlisted = unlisted_[pid];
    unlisted = listed ? unlisted / 2 : unlisted + 1;
}

// The shadow of any thread can do it. That of the caller is idle, unless its next call waits for
// this.
Task<void> Delegations::close(pid_t pid, int number) {
    closing_[pid]++;
    while (std::shared_ptr<StubThread> stub = idle_shadow(pid)) {
        const int64_t result = co_await stub->call(SYS_close, static_cast<uint64_t>(number));
        if (result != thread_gone) break;
    }
    if (--closing_[pid] == 0) closing_.erase(pid);
    changed_.notify_all();
}

std::shared_ptr<StubThread> Delegations::idle_shadow(pid_t pid) const {
    const HomeProcess* process = home_.find_process(pid);
    std::shared_ptr<StubThread> any;
    if (!process) return any;
    for (const auto& [tid, thread] : process->threads) {
        const bool is_shadow = !thread->helper && thread->remote() && thread->stub;
        if (!is_shadow || !thread->stub->in_stub() || thread->stub->dead()) continue;
        any = thread->stub;
        if (!any->working()) break;
    }
    return any;
}

void Delegations::forget(pid_t pid) {
    home_.lookups.forget(pid);
    watchers_.forget(pid);
    unlisted_.erase(pid);
    if (files_.erase(pid) > 0) changed_.notify_all();
}

void Delegations::forget_all() {
    files_.clear();
    changed_.notify_all();
}

Delegations::Held* Delegations::find(pid_t pid, int number, uint64_t id) {
    auto its = files_.find(pid);
    if (its == files_.end()) return nullptr;
    auto it = its->second.find(number);
    const bool known = it != its->second.end() && it->second->id == id;
    return known && it->second->state >= Held::State::given ? it->second.get() : nullptr;
}

bool Delegations::shares_descriptors(pid_t pid) const {
    return std::ranges::any_of(home_.processes, [&](const auto& other) {
        return other.first != pid && syscall(SYS_kcmp, pid, other.first, KCMP_FILES, 0, 0) == 0;
    });
}

bool Delegations::may_ever_offer(const HomeProcess& process, const HomeThread& thread) {
    return process.state == HomeProcess::State::split && !process.comes_home &&
           process.forks == 0 && !process.executing && !process.group_exit && !process.debugged &&
           thread.filters.empty();
}

bool Delegations::all_at(const HomeProcess& process, const HomeThread& thread) {
    if (!may_ever_offer(process, thread)) return false;
    auto is_there = [&](const auto& entry) {
        const HomeThread& one = *entry.second;
        return one.helper || (one.node == thread.node && !one.is_in(HomeThread::Business::visit) &&
                              !one.is_in(HomeThread::Business::departure));
    };
    return std::ranges::all_of(process.threads, is_there);
}

// Whether only threads at this acceptor could use the descriptor now.
bool Delegations::may_offer(const HomeProcess& process, const HomeThread& thread,
                            int number) const {
    if (!all_at(process, thread)) return false;
    return std::ranges::none_of(served_, [&](const Served& call) {
        if (changes_status(call.number, call.args.data())) return true;
        const bool concerns = call.pid == process.pid || call.number == SYS_pidfd_getfd;
        return concerns && needs_back(call.number, call.args.data(), number);
    });
}

// The position of every open file is shown in /proc/PID/fdinfo: from now on it is always home's.
void Delegations::note_special_file(int fd) {
    struct statfs of {};
    if (fstatfs(fd, &of) != 0 || of.f_type != PROC_SUPER_MAGIC) return;
    std::array<char, 256> path{};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (readlink(link.c_str(), path.data(), path.size() - 1) <= 0) return;
    if (std::string_view(path.data()).find("/fdinfo") != std::string_view::npos) is_off_ = true;
}

// False: its changes would not be heard of, or home may not list it.
bool Delegations::watch(Held& held, bool is_directory) {
    const int fd = held.file.get();
    held.watch = is_directory ? watched_->add_directory(fd) : watched_->add_file(fd);
    if (held.watch < 0 || !is_directory) return held.watch >= 0;
    held.above = watched_->add_above(fd);
    return held.above >= 0 && home_.lookups.may_list(fd);
}

std::unique_ptr<Delegations::Held> Delegations::take(const HomeProcess& process, NodeId node,
                                                     int number) {
    auto held = std::make_unique<Held>(*watched_, descriptor_of(process.pid, number));
    const int fd = held->file.get();
    struct stat status {};
    if (fd < 0 || fstat(fd, &status) != 0) return nullptr;
    const bool is_directory = S_ISDIR(status.st_mode);
    if (!(is_directory || S_ISREG(status.st_mode)) || !is_local(fd)) {
        note_special_file(fd);
        return nullptr;
    }
    // Who has made a memfd, or other memory without a name, does not count as a writer of it.
    if (status.st_nlink == 0) return nullptr;
    if (!is_plain_reader(fd) || shares_descriptors(process.pid)) return nullptr;
    if (is_directory && unlisted_[process.pid] >= most_unlisted) return nullptr;
    held->leased = !is_directory && fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
    if (!is_directory && !held->leased) return nullptr;
    if (!watch(*held, is_directory)) return nullptr;
    held->id = ++last_id_;
    held->node = node;
    return held;
}

// Without its head a file can be read, too.
Task<void> Delegations::read_head(OfferedFile& offered, StubThread& shadow, int number, int fd) {
    struct stat status {};
    fstat(fd, &status);
    const int64_t wanted = status.st_size <= whole_content ? status.st_size : head_content;
    offered.content = read_cached(fd, static_cast<size_t>(wanted));
    if (wanted == 0 || !offered.content.empty()) co_return;
    const Address bounce = Mailbox::bounce_address(shadow.slot());
    std::vector<gpr::Call> calls{
        {SYS_pread64,
         {static_cast<uint64_t>(number), bounce.value, static_cast<uint64_t>(wanted), 0}}};
    co_await shadow.run_locked(calls);
    if (shadow.dead() || calls[0].result != wanted) co_return;
    offered.content.resize(static_cast<size_t>(wanted));
    shadow.bounce().read(0, offered.content);
}

// All of its entries. It leaves the offset where they end. False: there are too many.
Task<bool> Delegations::list(OfferedFile& offered, StubThread& shadow, int number) {
    constexpr size_t turns = 4, at_once = whole_content / turns;
    const Address bounce = Mailbox::bounce_address(shadow.slot());
    const auto file = static_cast<uint64_t>(number);
    std::vector<gpr::Call> calls;
    for (size_t i = 0; i < turns; i++) {
        calls.push_back({SYS_getdents64, {file, bounce.value + i * at_once, at_once}});
    }
    co_await shadow.run_locked(calls);
    if (shadow.dead()) co_return false;
    for (size_t i = 0; i < turns; i++) {
        const int64_t got = calls[i].result;
        if (got < 0 || got > static_cast<int64_t>(at_once)) co_return false;
        if (got == 0) co_return true;
        const size_t before = offered.content.size();
        offered.content.resize(before + static_cast<size_t>(got));
        shadow.bounce().read(i * at_once, std::span(offered.content).subspan(before));
    }
    co_return false;
}

Task<std::unique_ptr<OfferedFile>> Delegations::offer(HomeProcess& process, HomeThread& thread,
                                                      const ForwardedCall& call) {
    const pid_t pid = process.pid;
    const int number = static_cast<int>(call.made.result);
    size_t all = 0;
    for (const auto& [owner, files] : files_) all += files.size();
    if (!call.may_delegate || !call.opens_by_name() || call.made.result < 0) co_return nullptr;
    static_cast<void>(nobody_notices());  // else this has been turned off
    if (is_off_ || all >= most_files) co_return nullptr;
    if (may_ever_offer(process, thread) && !all_at(process, thread)) {
        sleepers_.on_kept_back(process, thread.node);
    }
    if (!may_offer(process, thread, number)) co_return nullptr;
    auto held = take(process, thread.node, number);
    if (is_off_) {  // it has just been turned off
        auto any = [](pid_t, int) { return true; };
        while (recall_if(any)) co_await changed_.wait();
    }
    if (!held) co_return nullptr;
    auto offered = std::make_unique<OfferedFile>();
    offered->id = held->id;
    const int fd = held->file.get();
    files_[pid][number] = std::move(held);
    const bool is_directory = !files_[pid][number]->leased;
    bool complete = true;
    if (is_directory) {
        complete = co_await list(*offered, *call.shadow, number);
    } else {
        co_await read_head(*offered, *call.shadow, number, fd);
    }
    // It is gone if meanwhile anything happened for which it would have been recalled.
    look_for_changes();
    auto its = files_.find(pid);
    auto at = its == files_.end() ? Files::iterator() : its->second.find(number);
    if (its == files_.end() || at == its->second.end() || at->second->id != offered->id) {
        co_return nullptr;
    }
    Held& still = *at->second;
    changed_.notify_all();
    if (is_directory) lseek(still.file.get(), 0, SEEK_SET);
    if (is_directory && !complete) note_listing(pid, false);
    const bool holds = complete && still.state == Held::State::prepared && !call.shadow->dead() &&
                       may_offer(process, thread, number) && still.holds() &&
                       lseek(still.file.get(), 0, SEEK_CUR) == 0 &&
                       fstat(still.file.get(), &offered->status) == 0;
    if (!holds) {
        its->second.erase(at);
        co_return nullptr;
    }
    if (is_directory) home_.lookups.note_listing(still.file.get(), offered->content);
    still.state = Held::State::given;
    co_return offered;
}

}  // namespace gpr::home
