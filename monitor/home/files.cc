// Calls of program code at home that are about files of the acceptor: their threads go there.

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/log.h"
#include "monitor/home/session.h"
#include "monitor/node/proc_file.h"
#include "monitor/rules/call_rules.h"
#include "syscall/table.h"
#include "transport/texts.h"

namespace gpr {

bool HomeSession::is_about_acceptors_fd(const Notification& n) const {
    const Row* row = fd_base_ == 0 ? nullptr : find_row(n.number);
    if (row && n.number == SYS_close_range) return static_cast<uint32_t>(n.args[1]) >= fd_base_;
    for (size_t i = 0; row && i < row->arguments.size(); i++) {
        auto fd = static_cast<uint32_t>(n.args[i]);
        if (row->arguments[i].kind == Kind::fd && fd >= fd_base_ && fd <= INT32_MAX) return true;
    }
    return false;
}

bool HomeSession::is_acceptors_call(const Notification& n) const {
    return find_remote_call(remote_calls_, n.number, n.args[0]).has_value();
}

// The program has used what a profile is about that stood by.
void HomeSession::use_profile(wire::ProfileUse::Reader use) {
    const std::string name = use.getName().cStr();
    auto rule = paths_.standby_rule(name);
    if (!rule) {
        link_.close("the acceptor uses a profile that does not stand by");
        return;
    }
    paths_.use(*rule);
    const std::string path = printable(use.getPath().cStr());
    spdlog::info("{} is the acceptor's: profile {} is in force", path, name);
    tell_user(fmt::format("{} is used as the acceptor's from now on, as by --split profile:{}",
                          path, name));
}

// A set with descriptors of the acceptor is waited for there.
Task<void> HomeSession::poll_call(HomeProcess& process, HomeThread& thread, Notification n) {
    std::vector<pollfd> set(std::min<uint64_t>(n.args[1], fd_base_));
    bool readable = co_await pager_.read(*process.fragment, {n.args[0]},
                                         std::as_writable_bytes(std::span(set)));
    auto is_ours = [&](const pollfd& entry) {
        return entry.fd >= static_cast<int>(fd_base_) || names_.is_name(process, entry.fd);
    };
    if (readable && std::any_of(set.begin(), set.end(), is_ours)) {
        names_.tell(process);
        co_await leave_at_call(process, thread, true);
    } else {
        local_call(process, thread, n);
    }
}

bool HomeSession::is_acceptors(const HomeProcess& process, std::string_view path) const {
    const PathVerdict verdict = paths_.owner_of(path);
    if (verdict.owner == PathOwner::home) return false;
    if (verdict.standby && verdict.owner == PathOwner::whoever) return false;
    if (verdict.owner == PathOwner::whoever) {
        auto here = fmt::format("/proc/{}/root{}", process.pid, path);
        int found = faccessat(AT_FDCWD, here.c_str(), F_OK, AT_SYMLINK_NOFOLLOW);
        if (found == 0 || errno != ENOENT) return false;
    }
    rule_use_.note_path(verdict.rule);
    return true;
}

Task<void> HomeSession::path_call(HomeProcess& process, HomeThread& thread, Notification n,
                                  uint64_t path_at) {
    auto path = co_await pager_.read_text(*process.fragment, {path_at}, PATH_MAX);
    if (path && is_acceptors(process, *path)) {
        spdlog::debug("tid {}: {} is the acceptor's", thread.tid, *path);
        co_await leave_at_call(process, thread, true);
        co_return;
    }
    const Row* row = find_row(n.number);
    if (path && row && row->opens_by_name() && may_show_process(*path)) {
        co_await open_call(process, thread, n);
        co_return;
    }
    local_call(process, thread, n);
}

// Of a child whose memory is all here.
bool HomeSession::names_acceptors_file(const HomeProcess& process, const Notification& n) const {
    const Row* row = paths_.empty() ? nullptr : find_row(n.number);
    if (!row || row->path_argument() < 0) return false;
    auto memory = RemoteMemory::open(process.pid);
    if (!memory) return false;
    std::array<char, PATH_MAX> text{};
    Address at{n.args[row->path_argument()]};
    size_t got = memory->read(at, text.data(), text.size());
    size_t length = strnlen(text.data(), got);
    return length < got && is_acceptors(process, {text.data(), length});
}

}  // namespace gpr
