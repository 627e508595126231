#include "monitor/tracee/waits.h"

#include <poll.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <utility>
#include <vector>

#include "base/log.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/resume_request.h"

namespace gpr {

namespace {
constexpr std::chrono::seconds second_look{1};
constexpr std::chrono::seconds forgotten_in{10};
}  // namespace

WaitStatus WaitStatus::decode(int raw) {
    if (WIFEXITED(raw)) return {Kind::exited, WEXITSTATUS(raw)};
    if (WIFSIGNALED(raw)) return {Kind::killed, WTERMSIG(raw)};
    int signal = WSTOPSIG(raw);
    int event = raw >> 16;
    if (event == PTRACE_EVENT_STOP) {
        bool stopping =
            signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
        return stopping ? WaitStatus{Kind::group_stop, signal} : WaitStatus{Kind::trap_stop, 0};
    }
    if (event != 0) return {Kind::event, event};
    if (signal == (SIGTRAP | 0x80)) return {Kind::syscall_stop, 0};
    return {Kind::signal_stop, signal};
}

WaitStatus WaitStatus::of(pid_t tid, int raw) {
    WaitStatus status = decode(raw);
    if (status.kind == Kind::event && status.value == PTRACE_EVENT_EXIT)
        trace::note_end_reported(tid);
    // A thread that executes a program gets the id of the first one, which has ended then.
    const bool executes = status.kind == Kind::event && status.value == PTRACE_EVENT_EXEC;
    if (status.ended() || executes) trace::note_ended(tid);
    if (status.kind != Kind::signal_stop || status.value != SIGSTOP) return status;
    // Nothing else in the kernel sends one to who is traced by PTRACE_SEIZE.
    auto info = trace::signal_info(tid);
    if (info && info->si_code == SI_KERNEL) status.kind = Kind::call_end;
    return status;
}

Result<std::unique_ptr<Waits>> Waits::create(Loop& loop) {
    std::unique_ptr<Waits> waits(new Waits(loop));
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) return fail(errno, "cannot create a signalfd for SIGCHLD");
    waits->signal_fd_ = Fd(fd);
    Waits* raw = waits.get();
    waits->watch_ = loop.watch(fd, POLLIN, [raw](uint32_t) { raw->poll(); });
    return waits;
}

void Waits::poll() {
    signalfd_siginfo info{};  // SIGCHLD is pending at most once
    const bool told = ::read(signal_fd_.get(), &info, sizeof info) == sizeof info;
    pid_t named = told ? static_cast<pid_t>(info.ssi_pid) : 0;
    int status = 0;
    // To find any that has changed, the kernel goes through all tracees.
    const auto next = [&] {
        const pid_t first = std::exchange(named, 0);
        const pid_t changed = first > 0 ? waitpid(first, &status, WNOHANG | __WALL) : 0;
        return changed > 0 ? changed : waitpid(-1, &status, WNOHANG | __WALL);
    };
    pid_t tid;
    while ((tid = next()) > 0) {
        auto it = handlers_.find(tid);
        if (it == handlers_.end()) {
            // A newborn whose parent was killed before it could report the birth: let it die.
            bool dies = WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_EXIT;
            if (dies) ptrace(PTRACE_CONT, tid, nullptr, 0L);
            const WaitStatus known = WaitStatus::of(tid, status);
            const bool by_signal = known.kind == WaitStatus::Kind::signal_stop;
            if (trace::detach_late(tid, known.ended(), by_signal ? known.value : 0)) continue;
            early_[tid] = status;
            // After that time this end is not asked for any more, and the tid may be reused.
            if (!WIFSTOPPED(status)) loop_.after(forgotten_in, [this, tid] { early_.erase(tid); });
            continue;
        }
        auto handler = it->second;
        deliver(tid, *handler, WaitStatus::of(tid, status));
    }
    if (tid < 0 && errno == ECHILD && !handlers_.empty()) {
        loop_.after(second_look, [this] { report_vanished(); });
    }
}

// No child is left in the kernel, so every thread that we still wait for has ended unnoticed.
void Waits::report_vanished() {
    siginfo_t info{};
    int rc = waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL);
    if (rc == 0 || errno != ECHILD) return;
    std::vector<pid_t> lost;
    for (const auto& [tid, handler] : handlers_) lost.push_back(tid);
    for (pid_t tid : lost) {
        auto it = handlers_.find(tid);
        if (it == handlers_.end()) continue;
        spdlog::warn("thread {} has ended, and nobody said so", tid);
        auto handler = it->second;
        (*handler)({WaitStatus::Kind::killed, SIGKILL});
    }
}

void Waits::look_for_stop(pid_t tid) {
    auto it = handlers_.find(tid);
    if (it == handlers_.end()) return;
    siginfo_t info{};
    int rc = waitid(P_PID, static_cast<id_t>(tid), &info, WSTOPPED | WNOHANG | __WALL);
    if (rc != 0 || info.si_pid != tid) return;
    auto handler = it->second;
    deliver(tid, *handler, WaitStatus::of(tid, info.si_status << 8 | 0x7f));
}

void Waits::deliver(pid_t tid, Handler& handler, WaitStatus status) {
    if (look_) look_(tid, status);
    if (status.kind != WaitStatus::Kind::syscall_stop) trace::note_interrupted(tid);
    handler(status);
}

void Waits::deliver_later(pid_t tid, int raw) {
    loop_.post([this, tid, raw] {
        auto it = handlers_.find(tid);
        if (it == handlers_.end()) return;
        auto handler = it->second;
        deliver(tid, *handler, WaitStatus::of(tid, raw));
    });
}

void Waits::set_handler(pid_t tid, Handler handler) {
    handlers_[tid] = std::make_shared<Handler>(std::move(handler));
    auto it = early_.find(tid);
    if (it == early_.end()) return;
    int status = it->second;
    early_.erase(it);
    auto its = handlers_[tid];
    deliver(tid, *its, WaitStatus::of(tid, status));
}

void Waits::remove_handler(pid_t tid) { handlers_.erase(tid); }

}  // namespace gpr
