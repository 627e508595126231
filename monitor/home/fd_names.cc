#include "monitor/home/fd_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/log.h"
#include "monitor/home/acceptor_files.h"
#include "monitor/home/calls.h"
#include "monitor/home/children.h"
#include "monitor/home/crossings.h"
#include "monitor/home/forwarded_call.h"
#include "monitor/home/home.h"
#include "monitor/tracee/fault_origin.h"
#include "monitor/tracee/ptrace.h"
#include "syscall/name_filter.h"

namespace gpr::home {

namespace {

// The acceptor reserves the last two numbers below its own.
constexpr unsigned set_aside = 2;

bool duplicates(uint32_t number, const uint64_t* args) {
    if (number == SYS_fcntl) {
        auto command = static_cast<int>(args[1]);
        return command == F_DUPFD || command == F_DUPFD_CLOEXEC;
    }
    return number == SYS_dup || number == SYS_dup2 || number == SYS_dup3;
}

// Whether the call is about the descriptor rather than the file.
bool is_of_table(uint32_t number, const uint64_t* args) {
    if (number == SYS_close || number == SYS_close_range) return true;
    if (number == SYS_ioctl) {
        auto request = static_cast<uint32_t>(args[1]);
        return request == FIOCLEX || request == FIONCLEX;
    }
    auto command = static_cast<int>(args[1]);
    return number == SYS_fcntl && (command == F_GETFD || command == F_SETFD);
}

// The positions of the arguments that are descriptors which the call uses, one bit for each.
uint32_t fds_used(const Row& row, const uint64_t* args) {
    uint32_t places = row.fd_arguments();
    if (row.number == SYS_mmap && (args[3] & MAP_ANONYMOUS)) return 0;
    return places;
}

bool waits_for_epoll(uint64_t number) {
    return number == SYS_epoll_wait || number == SYS_epoll_pwait || number == SYS_epoll_pwait2;
}

bool replaces(uint32_t number) { return number == SYS_dup2 || number == SYS_dup3; }

// A file's number at its node, and the node, combined.
constexpr unsigned node_shift = 56;
uint64_t file_at(NodeId node, uint64_t file) {
    return (file & ((1ULL << node_shift) - 1)) | static_cast<uint64_t>(node) << node_shift;
}
NodeId node_of(uint64_t file) { return static_cast<NodeId>(file >> node_shift); }
uint64_t number_there(uint64_t file) { return file & ((1ULL << node_shift) - 1); }

void put_names(capnp::List<wire::FdName>::Builder list, const std::map<int, uint64_t>& names) {
    unsigned i = 0;
    for (const auto& [number, file] : names) {
        list[i].setNumber(number);
        list[i++].setFile(number_there(file));
    }
}

}  // namespace

Result<Fd> FdNames::make(uint64_t file) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
        return fail(errno, "cannot make a name for a file of the acceptor");
    }
    Held held{Fd(ends[0]), {}, 0};
    Fd name(ends[1]);
    struct stat status {};
    if (fstat(name.get(), &status) != 0) return fail(errno, "cannot look at a name");
    shutdown(held.end.get(), SHUT_RD);  // writing to the name fails
    held.inode = status.st_ino;
    // No events are requested, so this reports only that the other end has been closed.
    held.watch = home_.loop.watch(
        held.end.get(), 0, [this](uint32_t) { home_.loop.post([this] { look_for_gone(); }); });
    by_inode_[held.inode] = file;
    held_[file] = std::move(held);
    return name;
}

void FdNames::look_for_gone() {
    std::vector<uint64_t> gone;
    for (auto it = held_.begin(); it != held_.end();) {
        pollfd entry{it->second.end.get(), 0, 0};
        if (::poll(&entry, 1, 0) != 1 || !(entry.revents & POLLHUP)) {
            ++it;
            continue;
        }
        gone.push_back(it->first);
        by_inode_.erase(it->second.inode);
        it->second.watch.reset();
        it = held_.erase(it);
    }
    if (gone.empty() || !home_.acceptors.reachable()) return;
    home_.acceptors.each([&](RemoteNode& node) {
        auto is_its = [&](uint64_t file) { return node_of(file) == node.id; };
        auto count = static_cast<unsigned>(std::ranges::count_if(gone, is_its));
        if (count == 0) return;
        FrameBuilder frame;
        auto files = frame.session().initFilesGone().initFiles(count);
        unsigned i = 0;
        for (uint64_t file : gone) {
            if (is_its(file)) files.set(i++, number_there(file));
        }
        node.link.send(frame, Priority::urgent);
    });
}

std::optional<uint64_t> FdNames::file_of(pid_t pid, int number) const {
    if (held_.empty() || number < 0) return std::nullopt;
    struct stat status {};
    auto link = fmt::format("/proc/{}/fd/{}", pid, number);
    if (stat(link.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return std::nullopt;
    auto it = by_inode_.find(status.st_ino);
    if (it == by_inode_.end()) return std::nullopt;
    return it->second;
}

FdNames::Names FdNames::names_of(pid_t pid) const {
    Names names;
    if (held_.empty()) return names;
    DIR* folder = opendir(fmt::format("/proc/{}/fd", pid).c_str());
    if (!folder) return names;
    while (const dirent* entry = readdir(folder)) {
        int number = -1;
        std::string_view text = entry->d_name;
        auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
        if (parsed.ec != std::errc()) continue;
        if (auto file = file_of(pid, number)) names[number] = *file;
    }
    closedir(folder);
    return names;
}

bool FdNames::is_name(const HomeProcess& process, int number) const {
    return process.names_watched.contains(number) && file_of(process.pid, number);
}

std::optional<NodeId> FdNames::owner_of_name(const HomeProcess& process, int number) const {
    if (!process.names_watched.contains(number)) return std::nullopt;
    auto file = file_of(process.pid, number);
    return file ? std::optional(node_of(*file)) : std::nullopt;
}

NodeId FdNames::owner_of(const HomeProcess& process, const Notification& n) const {
    const Row* row = find_row(n.number);
    uint32_t places = row ? fds_used(*row, n.args) : 0;
    for (size_t i = 0; i < 6; i++) {
        auto number = static_cast<int>(n.args[i]);
        if (!(places & (1u << i))) continue;
        if (auto owner = owner_of_name(process, number)) return *owner;
        auto epoll = process.epolls_there.find(number);
        if (epoll != process.epolls_there.end()) return epoll->second;
    }
    // The call is about a range of descriptors, or a set in memory.
    Names names = names_of(process.pid);
    if (!names.empty()) return node_of(names.begin()->second);
    return process.epolls_there.empty() ? NodeId{1} : process.epolls_there.begin()->second;
}

// Whether a set of descriptors in memory has a name in it. A set that cannot be read counts as
// having one; the acceptor will report the error.
bool FdNames::waits_for_names(const HomeProcess& process, uint32_t number,
                              const uint64_t* args) const {
    if (!has_fds_in_memory(number)) return false;
    Names names = names_of(process.pid);
    if (names.empty()) return false;
    auto memory = RemoteMemory::open(process.pid);
    if (!memory) return false;
    if (number == SYS_poll || number == SYS_ppoll) {
        std::vector<pollfd> set(std::min<uint64_t>(args[1], home_.acceptors.fd_base()));
        if (!memory->read_exact({args[0]}, set.data(), set.size() * sizeof(pollfd))) return true;
        return std::any_of(set.begin(), set.end(),
                           [&](const pollfd& entry) { return names.contains(entry.fd); });
    }
    auto count = static_cast<int>(args[0]);
    for (size_t i = 1; i <= 3; i++) {
        for (const auto& [fd, file] : names) {
            if (args[i] == 0 || fd >= count) continue;
            uint64_t word = 0;
            Address at{args[i] + static_cast<uint64_t>(fd) / 64 * sizeof word};
            if (!memory->read_exact(at, &word, sizeof word)) return true;
            if (word >> (fd % 64) & 1) return true;
        }
    }
    return false;
}

// Whether the call concerns an epoll descriptor of which the acceptor has a part.
bool FdNames::concerns_epoll(const HomeProcess& process, uint32_t number, const uint64_t* args) {
    const std::map<int, NodeId>& shared = process.epolls_there;
    if (shared.empty()) return false;
    if (number == SYS_close_range) {
        return std::any_of(shared.begin(), shared.end(), [&](const auto& epoll) {
            auto fd = static_cast<uint32_t>(epoll.first);
            return fd >= static_cast<uint32_t>(args[0]) && fd <= static_cast<uint32_t>(args[1]);
        });
    }
    if (replaces(number)) return shared.contains(static_cast<int>(args[1]));
    bool about = waits_for_epoll(number) || number == SYS_close;
    return about && shared.contains(static_cast<int>(args[0]));
}

bool FdNames::concerns(const HomeProcess& process, uint32_t number, const uint64_t* args) const {
    if (concerns_epoll(process, number, args)) return true;
    if (held_.empty() || process.names_watched.empty()) return false;
    const Row* row = find_row(number);
    if (!row) return false;
    const Names& told = process.names_told;
    if (number == SYS_close_range) {
        auto first = told.lower_bound(
            static_cast<int>(std::min<uint64_t>(static_cast<uint32_t>(args[0]), INT32_MAX)));
        return first != told.end() &&
               static_cast<uint64_t>(first->first) <= static_cast<uint32_t>(args[1]);
    }
    if (waits_for_names(process, number, args)) return true;
    uint32_t places = fds_used(*row, args);
    for (size_t i = 0; i < 6; i++) {
        if (!(places & (1u << i))) continue;
        auto fd = static_cast<int>(args[i]);
        if (!is_name(process, fd)) continue;
        // Calls about a descriptor itself need the acceptor only if it knows the name.
        bool of_table = is_of_table(number, args) || (replaces(number) && i == 1);
        if (!of_table || (told.contains(fd) && number != SYS_fcntl && number != SYS_ioctl)) {
            return true;
        }
    }
    return false;
}

void FdNames::on_watched_call(HomeThread& thread, user_regs_struct regs) {
    HomeProcess& process = *thread.process;
    pid_t tid = thread.tid;
    const uint64_t args[6] = {regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9};
    bool local = process.state == HomeProcess::State::split && home_.policy.mixed() &&
                 !thread.helper && !thread.remote();
    bool young = process.can_be_split() && home_.acceptors.reachable();
    if ((!local && !young) || !concerns(process, static_cast<uint32_t>(regs.orig_rax), args)) {
        return trace::resume(tid);
    }
    // The call is undone. The thread makes it at the acceptor, or again once the process is split.
    trace::take_call_back(tid, regs);
    if (local) {
        tell(process);
        Notification call{};
        call.number = static_cast<uint32_t>(regs.rax);
        std::copy(args, args + 6, call.args);
        spawn(home_.crossings.leave_at_call(process, thread, owner_of(process, call), true));
    } else {
        spawn(home_.children.split_child(process.pid));
    }
    trace::resume(tid);
}

void FdNames::tell(HomeProcess& process) {
    if (!process.started_remotely || !home_.acceptors.reachable()) return;
    Names names = names_of(process.pid);
    std::erase_if(names, [&](const auto& name) {
        auto known = process.names_told.find(name.first);
        return known != process.names_told.end() && known->second == name.second;
    });
    home_.acceptors.each([&](RemoteNode& node) { tell(process, node, names_at(node.id, names)); });
}

FdNames::Names FdNames::names_at(NodeId node, const Names& names) {
    Names its;
    for (const auto& [number, file] : names) {
        if (node_of(file) == node) its[number] = file;
    }
    return its;
}

void FdNames::tell(HomeProcess& process, RemoteNode& node, const Names& names) {
    if (names.empty()) return;
    FrameBuilder frame;
    auto news = frame.session().initFdNames();
    news.setPid(process.pid);
    put_names(news.initNames(static_cast<unsigned>(names.size())), names);
    for (const auto& [number, file] : names) process.names_told[number] = file;
    node.link.send(frame, Priority::urgent);
}

// Installs the filter for this number. False if the kernel refuses: then program code at home could
// use the name itself.
Task<bool> FdNames::watch(HomeProcess& process, StubThread& stub, int number) {
    if (process.names_watched.contains(number)) co_return true;
    if (home_.call_stops) {  // it stops at each call, and asks
        process.names_watched.insert(number);
        co_return true;
    }
    ProgramFilter filter{0, name_filter(static_cast<uint32_t>(number))};
    int64_t result = co_await install_filter(stub, filter, true);
    if (result != 0) {
        spdlog::warn(
            "process {}: descriptor {} cannot be watched ({}): it cannot be a name of a "
            "file of the acceptor",
            process.pid, number,
            result > 0 ? "a thread has a filter of its own" : strerror(static_cast<int>(-result)));
        co_return false;
    }
    process.names_watched.insert(number);
    co_return true;
}

Task<void> FdNames::watch_all(HomeProcess& process, StubThread& stub) {
    process.names_told.clear();
    process.epolls_there.clear();
    for (const auto& [number, file] : names_of(process.pid)) {
        co_await watch(process, stub, number);
    }
}

int64_t FdNames::name_for_vfork_child(const Notification& n, NodeId owner, uint64_t file) {
    auto name = make(file_at(owner, file));
    bool closes = n.number == SYS_dup3 && (n.args[2] & O_CLOEXEC);
    int64_t result = -EMFILE;
    if (name && home_.filter_notifier) {
        result =
            home_.filter_notifier->put_fd(n.id, name->get(), static_cast<int>(n.args[1]), closes);
    }
    look_for_gone();
    return result;
}

FdNames::Names FdNames::untold(const HomeProcess& process, const ForwardedCall& call,
                               NodeId caller) const {
    Names names;
    if (held_.empty() || !call.row || !call.wants_reply) return names;
    const uint64_t* args = call.given.data();
    if (has_fds_in_memory(call.number)) {
        names = names_of(process.pid);
    } else if (!is_of_table(call.number, args)) {
        uint32_t places = fds_used(*call.row, args);
        for (size_t i = 0; i < 6; i++) {
            bool used = (places & (1u << i)) && !(replaces(call.number) && i == 1);
            auto number = static_cast<int>(args[i]);
            auto file = used ? file_of(process.pid, number) : std::nullopt;
            if (file) names[number] = *file;
        }
    }
    // Drops those that the caller's node knows. Files of other nodes can never be used there.
    std::erase_if(names, [&](const auto& name) {
        if (node_of(name.second) != caller) return false;
        auto known = process.names_told.find(name.first);
        return known != process.names_told.end() && known->second == name.second;
    });
    return names;
}

Task<bool> FdNames::answer(HomeProcess& process, HomeThread& thread, const ForwardedCall& call) {
    if (call.file != 0) {
        int64_t result = 0;
        if (call.number == SYS_epoll_ctl) {
            result = co_await share_epoll(process, call, thread.node);
        } else {
            result = co_await put(process, call, thread.node);
        }
        if (!call.shadow->dead()) home_.calls.reply(thread, result);
        co_return true;
    }
    Names used = untold(process, call, thread.node);
    Names names = names_at(thread.node, used);
    if (used.empty()) co_return false;
    FrameBuilder frame;
    auto done = frame.session().initCallDone();
    done.setPid(process.pid);
    done.setTid(thread.tid);
    done.setResult(-trace::restart_nointr);
    // Another acceptor's file: the thread goes there by way of home.
    done.setElsewhere(names.empty());
    put_names(done.initNames(static_cast<unsigned>(names.size())), names);
    for (const auto& [number, file] : names) process.names_told[number] = file;
    thread.wait = 0;
    home_.acceptors.at(thread.node).link.send(frame, Priority::urgent);
    co_return true;
}

// dup2 or dup3 of a file of the acceptor to a number of home.
Task<int64_t> FdNames::put(HomeProcess& process, const ForwardedCall& call, NodeId owner) {
    const uint64_t file = file_at(owner, call.file);
    auto number = static_cast<int>(call.given[1]);
    if (!replaces(call.number) || number < 0 ||
        static_cast<unsigned>(number) + set_aside >= home_.acceptors.fd_base() ||
        held_.contains(file)) {
        co_return -EBADF;
    }
    bool watched = co_await watch(process, *call.shadow, number);
    if (!watched) co_return -EBADF;
    auto name = make(file);
    if (!name) co_return -EMFILE;
    bool closes = call.number == SYS_dup3 && (call.given[2] & O_CLOEXEC);
    int64_t result = co_await call.shadow->put_fd(name->get(), number, closes);
    if (result >= 0) process.names_told[number] = file;
    name->reset();
    look_for_gone();
    co_return result;
}

// From now on threads wait for this epoll descriptor at the acceptor; those that wait here already
// go there.
Task<int64_t> FdNames::share_epoll(HomeProcess& process, const ForwardedCall& call, NodeId owner) {
    auto number = static_cast<int>(call.given[0]);
    std::error_code error;
    auto link = fmt::format("/proc/{}/fd/{}", process.pid, number);
    auto target = std::filesystem::read_symlink(link, error);
    if (error) co_return -EBADF;
    if (target != "anon_inode:[eventpoll]") co_return -EINVAL;
    auto shared = process.epolls_there.find(number);
    if (shared != process.epolls_there.end() && shared->second != owner) co_return -EPERM;
    pid_t pid = process.pid;
    bool watched = co_await watch(process, *call.shadow, number);
    if (!watched || home_.find_process(pid) != &process) co_return -EPERM;
    process.epolls_there[number] = owner;
    for (auto& [tid, thread] : process.threads) {
        if (thread->remote() || thread->helper || thread->awaited) continue;
        FaultOrigin origin = fault_origin(tid);
        bool waits = origin.kind == FaultOrigin::Kind::kernel && waits_for_epoll(origin.call);
        if (waits) spawn(home_.crossings.leave_at_call(process, *thread, owner, true));
    }
    co_return 0;
}

Task<void> FdNames::after_call(HomeProcess& process, const ForwardedCall& call) {
    if (!call.row || !call.row->changes_fds()) co_return;
    std::map<int, NodeId>& epolls = process.epolls_there;
    if (call.number == SYS_close) epolls.erase(static_cast<int>(call.given[0]));
    if (replaces(call.number) && call.made.result >= 0) {
        epolls.erase(static_cast<int>(call.given[1]));
    }
    if (call.number == SYS_close_range) {
        std::erase_if(epolls, [&](const auto& epoll) {
            auto fd = static_cast<uint32_t>(epoll.first);
            return fd >= static_cast<uint32_t>(call.given[0]) &&
                   fd <= static_cast<uint32_t>(call.given[1]);
        });
    }
    if (held_.empty()) co_return;
    Names& told = process.names_told;
    int64_t result = call.made.result;
    auto first = static_cast<int>(call.given[0]);
    if (call.number == SYS_close && result != -EBADF) told.erase(first);
    if (call.number == SYS_close_range && result == 0 && !(call.given[2] & CLOSE_RANGE_CLOEXEC)) {
        std::erase_if(told, [&](const auto& name) {
            auto number = static_cast<uint32_t>(name.first);
            return number >= static_cast<uint32_t>(call.given[0]) &&
                   number <= static_cast<uint32_t>(call.given[1]);
        });
    }
    if (duplicates(call.number, call.given.data()) && result >= 0) {
        auto number = static_cast<int>(result);
        auto source = told.find(first);
        if (source == told.end()) {
            told.erase(number);
        } else if (number != first) {
            told[number] = source->second;
            co_await watch(process, *call.shadow, number);
        }
    }
    look_for_gone();
}

}  // namespace gpr::home
