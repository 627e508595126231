#include "monitor/home/acceptor_files.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/log.h"
#include "monitor/home/crossings.h"
#include "monitor/home/fd_names.h"
#include "monitor/home/home.h"
#include "monitor/home/local_calls.h"
#include "monitor/home/proc_files.h"
#include "monitor/home/resting.h"
#include "monitor/node/proc_file.h"
#include "monitor/rules/call_rules.h"
#include "syscall/table.h"
#include "transport/texts.h"

namespace gpr::home {

namespace {

// nullopt if the process cannot read it, or it is too long: then the kernel refuses it as well.
std::optional<std::string> path_in(const RemoteMemory& memory, Address at) {
    constexpr size_t usual = 256;  // bytes; few paths are longer
    std::array<char, PATH_MAX> text;
    size_t got = memory.read(at, text.data(), usual);
    size_t length = strnlen(text.data(), got);
    if (length == usual) {
        got += memory.read({at.value + usual}, text.data() + usual, text.size() - usual);
        length = strnlen(text.data(), got);
    }
    if (length == got) return std::nullopt;
    return std::string(text.data(), length);
}

}  // namespace

AcceptorFiles::AcceptorFiles(Home& home)
    : home_(home),
      paths_(path_rules_of(home.options.rules), read_root_links()),
      path_nodes_(nodes_of_paths(home.options.rules)) {
    home.acceptors.each([&](const RemoteNode& node) {
        remote_calls_.push_back(remote_calls_of(home.options.rules, node.id));
    });
}

void AcceptorFiles::keep_standby(NodeId node, const std::vector<std::string>& profiles) {
    for (size_t i = 0; i < path_nodes_.size(); i++) {
        const std::string& profile = paths_.all()[i].standby;
        bool known = profile.empty() || std::ranges::find(profiles, profile) != profiles.end();
        if (path_nodes_[i] == node && !known) paths_.forget(i);
    }
}

bool AcceptorFiles::has_fds() const { return home_.acceptors.fd_base() != 0; }

bool AcceptorFiles::may_be_open() const {
    return profile_used_ || std::ranges::any_of(home_.options.rules, [](const SplitRule& rule) {
               return !is_about_code(rule.kind) && !rule.standby;
           });
}

bool AcceptorFiles::has_remote_calls() const {
    return std::ranges::any_of(remote_calls_, [](const auto& calls) { return !calls.empty(); });
}

std::optional<NodeId> AcceptorFiles::owner_of_fds(const Notification& n) const {
    const Row* row = has_fds() ? find_row(n.number) : nullptr;
    if (!row) return std::nullopt;
    if (n.number == SYS_close_range) {
        auto last = std::min<uint64_t>(static_cast<uint32_t>(n.args[1]), INT32_MAX);
        return home_.acceptors.owner_of_fd(static_cast<uint32_t>(last));
    }
    for (size_t i = 0; i < row->arguments.size(); i++) {
        if (row->arguments[i].kind != Kind::fd) continue;
        auto owner = home_.acceptors.owner_of_fd(static_cast<uint32_t>(n.args[i]));
        if (owner) return owner;
    }
    return std::nullopt;
}

std::optional<NodeId> AcceptorFiles::owner_of(const Notification& n) const {
    if (auto owner = owner_of_fds(n)) return owner;
    for (size_t i = 0; i < remote_calls_.size(); i++) {
        bool covered = find_remote_call(remote_calls_[i], n.number, n.args[0]).has_value();
        if (covered) return static_cast<NodeId>(i + 1);
    }
    return std::nullopt;
}

Task<bool> AcceptorFiles::is_for_another(HomeThread& thread, uint32_t number,
                                         SyscallArguments args) {
    const NodeId from = thread.node;
    HomeProcess& process = *thread.process;
    Notification n{};
    n.number = number;
    std::copy(args.begin(), args.end(), n.args);
    if (auto owner = owner_of(n)) co_return *owner != from;
    const Row* row = paths_.empty() ? nullptr : find_row(number);
    if (!row || row->path_argument() < 0) co_return false;
    std::shared_ptr<Fragment> fragment = process.fragment;
    std::shared_ptr<StubThread> stub = thread.stub;
    Address at{args[row->path_argument()]};
    auto path = co_await home_.pager.memory.read_text(*fragment, at, PATH_MAX);
    if (!path || stub->dead()) co_return false;
    auto owner = owner_of_path(process, *path);
    co_return owner.value_or(from) != from;
}

// An acceptor reports that the program has used a file of a profile on standby: the profile takes
// effect.
void AcceptorFiles::use_profile(RemoteNode& node, wire::ProfileUse::Reader use) {
    const std::string name = use.getName().cStr();
    auto rule = paths_.standby_rule(name);
    if (!rule) {
        node.link.close("the acceptor uses a profile that does not stand by");
        return;
    }
    paths_.use(*rule);
    home_.resting.names().renew();
    profile_used_ = true;
    const std::string path = printable(use.getPath().cStr());
    spdlog::info("{} is the acceptor's: profile {} is in force", path, name);
    home_.outputs.tell(fmt::format(
        "{} is used as the acceptor's from now on, as by --split profile:{}", path, name));
}

// A poll whose set has descriptors of an acceptor is made there.
Task<void> AcceptorFiles::poll_call(HomeProcess& process, HomeThread& thread, Notification n) {
    std::vector<pollfd> set(std::min<uint64_t>(n.args[1], home_.acceptors.fd_base()));
    bool readable = co_await home_.pager.memory.read(*process.fragment, {n.args[0]},
                                                     std::as_writable_bytes(std::span(set)));
    std::optional<NodeId> owner;
    for (const pollfd& entry : set) {
        if (owner || !readable) break;
        owner = home_.acceptors.owner_of_fd(static_cast<uint32_t>(entry.fd));
        if (!owner) owner = home_.fd_names.owner_of_name(process, entry.fd);
    }
    if (owner) {
        home_.fd_names.tell(process);
        co_await home_.crossings.leave_at_call(process, thread, *owner, true);
    } else {
        home_.local_calls.local_call(process, thread, n);
    }
}

// Whether home has no such file.
bool AcceptorFiles::is_missing(const HomeProcess& process, std::string_view path) {
    auto here = fmt::format("/proc/{}/root{}", process.pid, path);
    int found = faccessat(AT_FDCWD, here.c_str(), F_OK, AT_SYMLINK_NOFOLLOW);
    return found != 0 && errno == ENOENT;
}

// Whether home has such a folder, or a link to one.
bool AcceptorFiles::is_folder(const HomeProcess& process, std::string_view path) {
    struct stat here {};
    const auto name = fmt::format("/proc/{}/root{}", process.pid, path);
    return stat(name.c_str(), &here) == 0 && S_ISDIR(here.st_mode);
}

std::optional<NodeId> AcceptorFiles::owner_of_path(const HomeProcess& process,
                                                   std::string_view path) const {
    const PathVerdict verdict = paths_.owner_of(path);
    if (verdict.owner == PathOwner::home) return std::nullopt;
    if (verdict.standby && verdict.owner == PathOwner::whoever) return std::nullopt;
    if (verdict.owner == PathOwner::whoever && !is_missing(process, path)) return std::nullopt;
    home_.rule_use.note_path(verdict.rule);
    return path_nodes_.at(verdict.rule);
}

Task<void> AcceptorFiles::path_call(HomeProcess& process, HomeThread& thread, Notification n,
                                    uint64_t path_at) {
    auto path = co_await home_.pager.memory.read_text(*process.fragment, {path_at}, PATH_MAX);
    if (auto owner = path ? owner_of_path(process, *path) : std::nullopt) {
        spdlog::debug("tid {}: {} is of node {}", thread.tid, *path, *owner);
        co_await home_.crossings.leave_at_call(process, thread, *owner, true);
        co_return;
    }
    const Row* row = find_row(n.number);
    if (path && row && row->opens_by_name() && may_show_process(*path)) {
        co_await home_.proc_files.open_call(process, thread, n);
        co_return;
    }
    home_.local_calls.local_call(process, thread, n);
}

bool AcceptorFiles::names_acceptors_file(const HomeProcess& process, const Notification& n) const {
    const auto path = path_named_by(process, n);
    return path && owner_of_path(process, *path).has_value();
}

// Who only asks about a folder that is here, too, learns that there is one, as it would there; who
// wants something in it names that, or opens the folder.
bool AcceptorFiles::may_use_acceptors_file(const HomeProcess& process,
                                           const Notification& n) const {
    const auto path = path_named_by(process, n);
    if (!path) return false;
    const PathVerdict verdict = paths_.owner_of(*path);
    if (verdict.owner == PathOwner::home) return false;
    const bool opens = find_row(n.number)->opens_by_name();
    if (!opens && is_folder(process, *path)) return false;
    if (owner_of_path(process, *path)) return true;
    return opens && verdict.standby && verdict.owner == PathOwner::whoever &&
           is_missing(process, *path);
}

// For a process that is not split yet, so that all its memory is here.
std::optional<std::string> AcceptorFiles::path_named_by(const HomeProcess& process,
                                                        const Notification& n) const {
    const Row* row = paths_.empty() ? nullptr : find_row(n.number);
    if (!row || row->path_argument() < 0) return std::nullopt;
    const Address at{n.args[row->path_argument()]};
    if (!process.rest) {
        auto memory = RemoteMemory::open(process.pid);
        return memory ? path_in(*memory, at) : std::nullopt;
    }
    LastMemory& last = *last_memory_;
    if (last.rest != process.rest->number) {
        auto memory = RemoteMemory::open(process.pid);
        if (!memory) return std::nullopt;
        last.memory.emplace(std::move(*memory));
        last.rest = process.rest->number;
    }
    return path_in(*last.memory, at);
}

}  // namespace gpr::home
