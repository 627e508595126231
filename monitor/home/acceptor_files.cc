#include "monitor/home/acceptor_files.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
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
#include "monitor/node/proc_file.h"
#include "monitor/rules/call_rules.h"
#include "syscall/table.h"
#include "transport/texts.h"

namespace gpr::home {

AcceptorFiles::AcceptorFiles(Home& home)
    : home_(home),
      paths_(path_rules_of(home.options.rules), read_root_links()),
      remote_calls_(remote_calls_of(home.options.rules)) {}

bool AcceptorFiles::is_about_acceptors_fd(const Notification& n) const {
    const Row* row = home_.acceptor.fd_base == 0 ? nullptr : find_row(n.number);
    if (row && n.number == SYS_close_range) {
        return static_cast<uint32_t>(n.args[1]) >= home_.acceptor.fd_base;
    }
    for (size_t i = 0; row && i < row->arguments.size(); i++) {
        auto fd = static_cast<uint32_t>(n.args[i]);
        if (row->arguments[i].kind == Kind::fd && fd >= home_.acceptor.fd_base && fd <= INT32_MAX) {
            return true;
        }
    }
    return false;
}

bool AcceptorFiles::is_acceptors_call(const Notification& n) const {
    return find_remote_call(remote_calls_, n.number, n.args[0]).has_value();
}

// The program has used what a profile is about that stood by.
void AcceptorFiles::use_profile(wire::ProfileUse::Reader use) {
    const std::string name = use.getName().cStr();
    auto rule = paths_.standby_rule(name);
    if (!rule) {
        home_.acceptor.link.close("the acceptor uses a profile that does not stand by");
        return;
    }
    paths_.use(*rule);
    const std::string path = printable(use.getPath().cStr());
    spdlog::info("{} is the acceptor's: profile {} is in force", path, name);
    home_.outputs.tell(fmt::format(
        "{} is used as the acceptor's from now on, as by --split profile:{}", path, name));
}

// A set with descriptors of the acceptor is waited for there.
Task<void> AcceptorFiles::poll_call(HomeProcess& process, HomeThread& thread, Notification n) {
    std::vector<pollfd> set(std::min<uint64_t>(n.args[1], home_.acceptor.fd_base));
    bool readable = co_await home_.pager.memory.read(*process.fragment, {n.args[0]},
                                                     std::as_writable_bytes(std::span(set)));
    auto is_ours = [&](const pollfd& entry) {
        return entry.fd >= static_cast<int>(home_.acceptor.fd_base) ||
               home_.fd_names.is_name(process, entry.fd);
    };
    if (readable && std::any_of(set.begin(), set.end(), is_ours)) {
        home_.fd_names.tell(process);
        co_await home_.crossings.leave_at_call(process, thread, true);
    } else {
        home_.local_calls.local_call(process, thread, n);
    }
}

bool AcceptorFiles::is_acceptors(const HomeProcess& process, std::string_view path) const {
    const PathVerdict verdict = paths_.owner_of(path);
    if (verdict.owner == PathOwner::home) return false;
    if (verdict.standby && verdict.owner == PathOwner::whoever) return false;
    if (verdict.owner == PathOwner::whoever) {
        auto here = fmt::format("/proc/{}/root{}", process.pid, path);
        int found = faccessat(AT_FDCWD, here.c_str(), F_OK, AT_SYMLINK_NOFOLLOW);
        if (found == 0 || errno != ENOENT) return false;
    }
    home_.rule_use.note_path(verdict.rule);
    return true;
}

Task<void> AcceptorFiles::path_call(HomeProcess& process, HomeThread& thread, Notification n,
                                    uint64_t path_at) {
    auto path = co_await home_.pager.memory.read_text(*process.fragment, {path_at}, PATH_MAX);
    if (path && is_acceptors(process, *path)) {
        spdlog::debug("tid {}: {} is the acceptor's", thread.tid, *path);
        co_await home_.crossings.leave_at_call(process, thread, true);
        co_return;
    }
    const Row* row = find_row(n.number);
    if (path && row && row->opens_by_name() && may_show_process(*path)) {
        co_await home_.proc_files.open_call(process, thread, n);
        co_return;
    }
    home_.local_calls.local_call(process, thread, n);
}

// Of a child whose memory is all here.
bool AcceptorFiles::names_acceptors_file(const HomeProcess& process, const Notification& n) const {
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

}  // namespace gpr::home
