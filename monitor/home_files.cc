// Calls of program code at home that are about files of the acceptor: their threads go there.

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "base/log.h"
#include "monitor/home_session.h"
#include "syscall/table.h"

namespace gpr {

bool HomeSession::is_about_acceptors_fd(const Notification& n) const {
    const Row* row = fd_base_ == 0 ? nullptr : find_row(n.number);
    for (size_t i = 0; row && i < row->arguments.size(); i++) {
        auto fd = static_cast<uint32_t>(n.args[i]);
        if (row->arguments[i].kind == Kind::fd && fd >= fd_base_ && fd <= INT32_MAX) return true;
    }
    return false;
}

bool HomeSession::is_acceptors(const HomeProcess& process, std::string_view path) const {
    const PathVerdict verdict = paths_.owner_of(path);
    if (verdict.owner == PathOwner::home) return false;
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
        co_await open_call(process, thread, n, *path);
        co_return;
    }
    local_call(process, thread, n);
}

// In its stub, and is given what it should see.
Task<void> HomeSession::open_call(HomeProcess& process, HomeThread& thread, Notification n,
                                  std::string path) {
    if (!notifier_->still_valid(n.id)) co_return;
    auto context = co_await capture(thread);
    if (!context) co_return;
    StubThread& stub = *thread.stub;
    std::vector<Call> calls{Call{n.number, {}, 0}};
    std::memcpy(calls[0].args, n.args, sizeof n.args);
    {
        auto guard = co_await stub.lock();
        co_await stub.run_locked(calls);
        if (stub.dead()) co_return;
        co_await note_opened(process, stub, n.number, path, calls[0].result);
    }
    context->regs.rax = static_cast<uint64_t>(calls[0].result);
    context->regs.orig_rax = ~0UL;
    thread.masked = false;
    co_await stub.resume(*context);
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
