#include "acceptor/worker/inheritance.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "acceptor/worker/file_mappings.h"
#include "acceptor/worker/names.h"
#include "acceptor/worker/timers.h"
#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "monitor/tracee/process_stat.h"
#include "syscall/table.h"

namespace gpr::worker {

namespace {

// The kernel assigns the lowest free number, so open descriptors are close together: the search
// ends after a gap as long as this.
constexpr int most_gaps = 64;

}  // namespace

std::vector<KeptFd> Inheritance::descriptors_of(const RemoteProcess& process) {
    std::vector<KeptFd> kept;
    if (process.fd_base == 0) return kept;
    auto is_hidden = [&](int fd) {
        return std::any_of(process.epolls.begin(), process.epolls.end(),
                           [&](const auto& epoll) { return epoll.second.fd == fd; });
    };
    auto closes = [&](int fd) { return (descriptor_flags(process.host_pid, fd) & O_CLOEXEC) != 0; };
    int number = static_cast<int>(process.fd_base);
    for (int gaps = 0; gaps < most_gaps; number++) {
        Fd copy(static_cast<int>(syscall(SYS_pidfd_getfd, process.pidfd.get(), number, 0)));
        gaps = copy ? 0 : gaps + 1;
        if (!copy || is_hidden(number)) continue;
        kept.push_back({number, std::move(copy), closes(number)});
    }
    return kept;
}

void Inheritance::keep_descriptors(pid_t pid, std::vector<KeptFd> kept) {
    if (!kept.empty()) kept_[pid].descriptors = std::move(kept);
}

void Inheritance::keep_sources(pid_t pid, std::vector<std::shared_ptr<Fd>> sources) {
    if (!sources.empty()) kept_[pid].sources = std::move(sources);
}

// The image is about to be replaced by exec.
Task<void> Inheritance::keep_of_image(RemoteProcess& process) {
    pid_t pid = process.pid;
    keep_descriptors(pid, descriptors_of(process));
    if (process.mixed) co_return;  // home has its timers
    auto timers = co_await worker_.timers.interval_timers(process);
    if (!timers.empty()) kept_[pid].timers = std::move(timers);
}

// The process is about to run; nobody else uses its executor yet.
Task<Result<void>> Inheritance::give_kept(RemoteProcess& process, bool new_image) {
    auto node = kept_.extract(process.pid);
    if (node.empty()) co_return Result<void>{};
    if (!new_image) process.sources = std::move(node.mapped().sources);
    auto given = co_await give_descriptors(process, node.mapped(), new_image);
    if (given) co_await worker_.timers.inherit(process, std::move(node.mapped().timers));
    co_return given;
}

Task<Result<void>> Inheritance::give_descriptors(RemoteProcess& process, const Kept& all,
                                                 bool new_image) {
    StubThread& executor = process.fragment->executor();
    for (const KeptFd& kept : all.descriptors) {
        if (new_image && kept.closes_on_exec) continue;
        if (!co_await executor.take_fd(kept.copy.get(), kept.number)) {
            co_return fail(fmt::format("cannot give the process descriptor {}", kept.number));
        }
        if (kept.closes_on_exec) {
            co_await executor.call(SYS_fcntl, static_cast<uint64_t>(kept.number), F_SETFD,
                                   FD_CLOEXEC);
        }
    }
    co_return Result<void>{};
}

// A child of a thread at home has been born.
void Inheritance::on_heir(wire::Heir::Reader heir) {
    std::vector<KeptFd> all;
    std::vector<std::shared_ptr<Fd>> sources;
    if (RemoteProcess* parent = worker_.find_process(heir.getParent())) {
        all = descriptors_of(*parent);
        sources = FileMappings::sources_of(*parent);
    } else if (auto kept = kept_.find(heir.getParent()); kept != kept_.end()) {
        for (const KeptFd& fd : kept->second.descriptors) {
            all.push_back(
                {fd.number, Fd(fcntl(fd.copy.get(), F_DUPFD_CLOEXEC, 0)), fd.closes_on_exec});
        }
        sources = kept->second.sources;
    }
    keep_descriptors(heir.getChild(), std::move(all));
    keep_sources(heir.getChild(), std::move(sources));
}

// A call by a child that shares its parent's memory and runs at home until it execs.
void Inheritance::on_kept_call(wire::KeptCall::Reader call) {
    auto [result, file] = make_kept_call(call);
    FrameBuilder frame;
    auto done = frame.session().initKeptDone();
    done.setCookie(call.getCookie());
    done.setResult(result);
    done.setFile(file);
    worker_.link.send(frame, gpr::Priority::urgent);
}

// Returns the kernel's result, and for dup2 the file that shall get a name.
std::pair<int64_t, uint64_t> Inheritance::make_kept_call(wire::KeptCall::Reader call) {
    auto args = call.getArgs();
    auto kept = kept_.find(call.getPid());
    if (kept == kept_.end() || args.size() != 6) return {-EBADF, 0};
    std::vector<KeptFd>& all = kept->second.descriptors;
    auto number = static_cast<uint32_t>(args[0]);
    if (call.getNumber() == SYS_close_range) {
        auto concerned = [&](const KeptFd& fd) {
            return static_cast<uint32_t>(fd.number) >= number &&
                   static_cast<uint32_t>(fd.number) <= static_cast<uint32_t>(args[1]);
        };
        if (args[2] & CLOSE_RANGE_CLOEXEC) {
            for (KeptFd& fd : all) fd.closes_on_exec |= concerned(fd);
        } else {
            std::erase_if(all, concerned);
        }
        return {0, 0};
    }
    auto it = std::find_if(all.begin(), all.end(), [&](const KeptFd& fd) {
        return static_cast<uint32_t>(fd.number) == number;
    });
    if (it == all.end()) return {-EBADF, 0};
    const AtAcceptor handler = handlers_of(call.getNumber()).there;
    if (handler == AtAcceptor::close) {
        all.erase(it);
        return {0, 0};
    }
    if (handler == AtAcceptor::duplicate) return duplicate_kept(*it, call.getNumber(), args);
    if (call.getNumber() != SYS_fcntl) return {-EBADF, 0};
    if (args[1] == F_GETFD) return {it->closes_on_exec ? FD_CLOEXEC : 0, 0};
    if (args[1] == F_GETFL) return {fcntl(it->copy.get(), F_GETFL), 0};
    if (args[1] != F_SETFD) return {-EBADF, 0};
    it->closes_on_exec = args[2] & FD_CLOEXEC;
    return {0, 0};
}

// dup2 and dup3.
std::pair<int64_t, uint64_t> Inheritance::duplicate_kept(const KeptFd& kept, uint32_t number,
                                                         capnp::List<uint64_t>::Reader args) {
    const bool is_dup2 = number == SYS_dup2;
    const auto from = static_cast<uint32_t>(args[0]), to = static_cast<uint32_t>(args[1]);
    if (!is_dup2 && (static_cast<uint32_t>(args[2]) & ~O_CLOEXEC)) return {-EINVAL, 0};
    if (from == to) return {is_dup2 ? int64_t{from} : -EINVAL, 0};
    Fd copy(fcntl(kept.copy.get(), F_DUPFD_CLOEXEC, 0));
    if (!copy) return {-EMFILE, 0};
    return {static_cast<int64_t>(args[1]), worker_.names.add_file(std::move(copy))};
}

}  // namespace gpr::worker
