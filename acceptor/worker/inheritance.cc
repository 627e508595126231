// Descriptors of this host that a child of fork has, and a new image keeps, as it does interval
// timers. Children begin at home, and images too, so we hold copies until the process is made here.

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "acceptor/worker/worker.h"
#include "base/log.h"

namespace gpr {

namespace {

// The kernel gives out the lowest free number, so what is open lies close together.
constexpr int most_gaps = 64;

bool closes_on_exec(pid_t host_pid, int fd) {
    std::ifstream in(fmt::format("/proc/{}/fdinfo/{}", host_pid, fd));
    std::string word;
    while (in >> word) {
        unsigned flags = 0;
        if (word == "flags:" && in >> std::oct >> flags) return flags & O_CLOEXEC;
    }
    return false;
}

}  // namespace

std::vector<Worker::KeptFd> Worker::descriptors_of(const RemoteProcess& process) {
    std::vector<KeptFd> kept;
    if (process.fd_base == 0) return kept;
    auto is_hidden = [&](int fd) {
        return std::any_of(process.epolls.begin(), process.epolls.end(),
                           [&](const auto& epoll) { return epoll.second.fd == fd; });
    };
    int number = static_cast<int>(process.fd_base);
    for (int gaps = 0; gaps < most_gaps; number++) {
        Fd copy(static_cast<int>(syscall(SYS_pidfd_getfd, process.pidfd.get(), number, 0)));
        gaps = copy ? 0 : gaps + 1;
        if (!copy || is_hidden(number)) continue;
        kept.push_back({number, std::move(copy), closes_on_exec(process.host_pid, number)});
    }
    return kept;
}

void Worker::keep_descriptors(pid_t pid, std::vector<KeptFd> kept) {
    if (!kept.empty()) kept_[pid].descriptors = std::move(kept);
}

// The image is about to be ended for the next one.
Task<void> Worker::keep_of_image(RemoteProcess& process) {
    pid_t pid = process.pid;
    keep_descriptors(pid, descriptors_of(process));
    if (process.mixed) co_return;  // home has its timers
    auto timers = co_await interval_timers(process);
    if (!timers.empty()) kept_[pid].timers = std::move(timers);
}

// The process is about to run; nobody else uses its executor.
Task<Result<void>> Worker::give_kept(RemoteProcess& process, bool new_image) {
    auto node = kept_.extract(process.pid);
    if (node.empty()) co_return Result<void>{};
    auto given = co_await give_descriptors(process, node.mapped(), new_image);
    if (given) co_await set_interval_timers(*process.fragment, std::move(node.mapped().timers));
    co_return given;
}

Task<Result<void>> Worker::give_descriptors(RemoteProcess& process, const Kept& all,
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

}  // namespace gpr
