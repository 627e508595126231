#include "monitor/home/tracing.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "monitor/home/ends.h"
#include "monitor/home/helper_calls.h"
#include "monitor/home/home.h"
#include "monitor/home/signals.h"
#include "monitor/ptrace/wait_call.h"
#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/resume_request.h"

namespace gpr::home {

using ptrace::Tracee;

namespace {

// Marks our SIGCHLD: a signal that a program sends has 0 here.
constexpr int mark_of_ours = 0x67707274;
constexpr int bits_of_code = 4;  // CLD_*

constexpr uint64_t bit_of(int signal) { return 1ULL << (signal - 1); }

uint64_t option_of(int event) { return 1ULL << event; }

int status_of(WaitStatus status) {
    return status.kind == WaitStatus::Kind::exited ? status.value << 8 : status.value;
}

}  // namespace

Tracee* Tracing::find(pid_t tid) {
    auto it = tracees_.find(tid);
    return it == tracees_.end() ? nullptr : &it->second;
}

std::vector<Tracee*> Tracing::tracees_of(pid_t process) {
    std::vector<Tracee*> found;
    for (auto& [tid, tracee] : tracees_) {
        if (tracee.tracers_process == process) found.push_back(&tracee);
    }
    return found;
}

bool Tracing::concerns(pid_t process) const {
    return std::ranges::any_of(tracees_, [&](const auto& one) {
        return one.second.process == process || one.second.tracers_process == process;
    });
}

bool Tracing::traces(pid_t process) const {
    return std::ranges::any_of(
        tracees_, [&](const auto& one) { return one.second.tracers_process == process; });
}

pid_t Tracing::maker_of(pid_t process) const {
    auto it = makers_.find(process);
    return it == makers_.end() ? 0 : it->second;
}

void Tracing::keep_home(HomeProcess& process) {
    process.rest.reset();
    process.stays_home = true;
}

Tracee& Tracing::begin(HomeThread& tracer, HomeThread& tracee) {
    if (!tracer.process->fragment) keep_home(*tracer.process);
    keep_home(*tracee.process);
    Tracee& its = tracees_[tracee.tid];
    its = {};
    its.tid = tracee.tid;
    its.process = tracee.process->pid;
    its.tracer = tracer.tid;
    its.tracers_process = tracer.process->pid;
    its.is_child = parent_of(its.process) == its.tracers_process;
    spdlog::debug("thread {} traces thread {} of {}", tracer.tid, its.tid, its.process);
    return its;
}

void Tracing::resume(Tracee& tracee, int request, int signal) {
    const pid_t tid = tracee.tid;
    tracee.state = Tracee::State::runs;
    tracee.by_job_control = false;
    trace::go_on_by(tid, request);
    if (tracee.then) {
        auto then = std::exchange(tracee.then, nullptr);
        then();
    } else {
        trace::resume(tid, signal);
    }
}

void Tracing::release(pid_t tid, int signal) {
    Tracee* tracee = find(tid);
    if (!tracee) return;
    const Tracee was = std::move(*tracee);
    tracees_.erase(tid);
    trace::go_on_by(tid, PTRACE_CONT);
    if (was.held || was.state == Tracee::State::stopped) {
        if (was.then) {
            was.then();
        } else if (was.by_job_control) {
            trace::stay_stopped(tid);
        } else {
            trace::resume(tid, signal);
        }
    }
}

void Tracing::reap(pid_t tid) {
    Tracee* tracee = find(tid);
    if (!tracee) return;
    const bool held = tracee->held;
    tracees_.erase(tid);
    trace::go_on_by(tid, PTRACE_CONT);
    if (held) trace::resume(tid);
}

// There is news for who traces it.
void Tracing::tell(Tracee& tracee, int status) {
    if (tracee.state != Tracee::State::ended) tracee.state = Tracee::State::stopped;
    tracee.status = status;
    tracee.waited_for = false;
    spdlog::trace("thread {} tells its tracer {} of status {:#x}", tracee.tid, tracee.tracer,
                  status);
    waits.wake_for(tracee);
    send_signal(tracee);
}

// As the kernel, which sends none that is ignored. One of our own cannot say that the kernel has
// sent it: restore_signal() does, if a handler is about to run.
void Tracing::send_signal(const Tracee& tracee) {
    const pid_t pid = tracee.tracers_process;
    const uint64_t matters =
        (trace::signal_set(pid, "SigCgt:") | trace::signal_set(tracee.tracer, "SigBlk:")) &
        ~trace::signal_set(pid, "SigIgn:");
    if (!(matters & bit_of(SIGCHLD))) return;
    siginfo_t info = ptrace::news_of(tracee, ptrace::user_of(tracee.process));
    if (tracee.state != Tracee::State::ended) {
        const bool trapped =
            !tracee.by_job_control && ptrace::event_in(tracee.status) != ptrace::event_stop;
        info.si_code = trapped ? CLD_TRAPPED : CLD_STOPPED;
        info.si_status = ptrace::signal_in(tracee.status) & 0x7f;
    }
    info.si_errno = mark_of_ours;
    info.si_status = info.si_status << bits_of_code | info.si_code;
    info.si_code = SI_QUEUE;
    syscall(SYS_rt_sigqueueinfo, pid, SIGCHLD, &info);
}

void Tracing::restore_signal(const HomeThread& thread, int signal) {
    if (signal != SIGCHLD) return;
    auto info = trace::signal_info(thread.tid);
    if (!info || info->si_errno != mark_of_ours || info->si_code != SI_QUEUE) return;
    info->si_errno = 0;
    info->si_code = info->si_status & ((1 << bits_of_code) - 1);
    info->si_status >>= bits_of_code;
    trace::set_signal_info(thread.tid, *info);
}

// In place of one that the kernel sends to a thread that is traced.
void Tracing::send_to_itself(const Tracee& tracee, int signal, Tracee::Expected expected) {
    tracees_.at(tracee.tid).expected = expected;
    syscall(SYS_tgkill, tracee.process, tracee.tid, signal);
}

bool Tracing::takes_stop(HomeThread& thread, WaitStatus status) {
    Tracee* tracee = find(thread.tid);
    if (!tracee || status.ended()) return false;
    switch (status.kind) {
        case WaitStatus::Kind::signal_stop: return takes_signal(thread, *tracee, status.value);
        case WaitStatus::Kind::event: return takes_event(*tracee, status.value);
        case WaitStatus::Kind::trap_stop: return takes_trap(thread, *tracee);
        case WaitStatus::Kind::group_stop:
            home_.signals.stop_remotely(*thread.process, true);
            tracee->by_job_control = true;
            tracee->to_interrupt = false;
            if (std::exchange(tracee->expected, {}) == Tracee::Expected::stop_of_attach) {
                tell(*tracee, ptrace::stop_status(SIGSTOP));
            } else {
                tell(*tracee,
                     ptrace::stop_status(status.value, tracee->seized ? ptrace::event_stop : 0));
            }
            return true;
        case WaitStatus::Kind::syscall_stop:
            tell(*tracee,
                 ptrace::stop_status(
                     SIGTRAP | (tracee->has(PTRACE_O_TRACESYSGOOD) ? ptrace::call_stop_bit : 0)));
            return true;
        default: return false;
    }
}

bool Tracing::takes_signal(HomeThread& thread, Tracee& tracee, int signal) {
    if (signal == SIGCHLD && tells_of_helper(home_.orphaned_helpers, thread.tid)) return false;
    if (signal == SIGCONT) home_.signals.stop_remotely(*thread.process, false);
    restore_signal(thread, signal);
    const Tracee::Expected expected = tracee.expected;
    const bool at_exec = expected == Tracee::Expected::trap_after_exec;
    if (signal == (at_exec ? SIGTRAP : SIGSTOP) && expected != Tracee::Expected::nothing) {
        tracee.expected = Tracee::Expected::nothing;
        siginfo_t info{};
        info.si_signo = signal;
        if (expected == Tracee::Expected::stop_of_attach) info.si_code = SI_KERNEL;
        if (at_exec) {
            info.si_pid = tracee.process;
            info.si_uid = ptrace::user_of(tracee.process);
        }
        trace::set_signal_info(thread.tid, info);
    }
    tell(tracee, ptrace::stop_status(signal));
    return true;
}

bool Tracing::takes_event(Tracee& tracee, int event) {
    if (event == PTRACE_EVENT_EXIT) {
        if (tracee.knows_end || !tracee.has(PTRACE_O_TRACEEXIT)) return false;
        tracee.knows_end = true;
        tracee.then = [this, pid = tracee.process, tid = tracee.tid] {
            HomeThread* same = home_.find_thread(pid, tid);
            if (same) spawn(home_.ends.finish(*same->process, *same));
        };
    } else if (event != PTRACE_EVENT_VFORK_DONE || !tracee.has(PTRACE_O_TRACEVFORKDONE)) {
        return false;  // births and execs come here later
    }
    tell(tracee, ptrace::stop_status(SIGTRAP, event));
    return true;
}

// Because of PTRACE_INTERRUPT, which may be ours, at birth, or as job control lets it go on.
bool Tracing::takes_trap(HomeThread& thread, Tracee& tracee) {
    const bool newborn = std::exchange(tracee.newborn, false);
    const bool interrupted = std::exchange(tracee.to_interrupt, false);
    const bool continued = tracee.state == Tracee::State::listens;
    if (continued) home_.signals.stop_remotely(*thread.process, false);
    if (tracee.seized && (newborn || interrupted || continued)) {
        tell(tracee, ptrace::stop_status(SIGTRAP, ptrace::event_stop));
        return true;
    }
    if (!newborn) return false;
    send_to_itself(tracee, SIGSTOP, Tracee::Expected::stop_at_birth);
    trace::resume(thread.tid);
    return true;
}

bool Tracing::takes_filter_stop(HomeThread& thread) {
    Tracee* tracee = find(thread.tid);
    if (!tracee || !tracee->has(PTRACE_O_TRACESECCOMP)) return false;
    tell(*tracee, ptrace::stop_status(SIGTRAP, PTRACE_EVENT_SECCOMP));
    return true;
}

void Tracing::on_birth(const HomeThread& parent, pid_t tid, int event) {
    makers_[tid] = parent.tid;
    if (calls.is_untraced(parent.tid)) return;
    Tracee* tracee = find(parent.tid);
    if (!tracee || !tracee->has(option_of(event))) return;
    const bool is_thread =
        access(fmt::format("/proc/{}/task/{}", parent.process->pid, tid).c_str(), F_OK) == 0;
    Tracee child;
    child.tid = tid;
    child.process = is_thread ? tracee->process : tid;
    child.tracer = tracee->tracer;
    child.tracers_process = tracee->tracers_process;
    child.is_child = parent_of(child.process) == child.tracers_process;
    child.seized = tracee->seized;
    child.options = tracee->options;
    child.newborn = true;
    tracees_[tid] = std::move(child);
}

bool Tracing::takes_birth(const HomeThread& parent, int event) {
    Tracee* tracee = find(parent.tid);
    auto child = trace::event_message(parent.tid);
    const bool traced = child && find(static_cast<pid_t>(*child));
    if (!tracee || !traced || !tracee->has(option_of(event))) return false;
    tell(*tracee, ptrace::stop_status(SIGTRAP, event));
    return true;
}

// The thread has the process's id now, and is the only one.
void Tracing::on_exec(const HomeThread& thread) {
    const pid_t pid = thread.process->pid;
    auto former = trace::event_message(thread.tid);
    const pid_t was = former ? static_cast<pid_t>(*former) : pid;
    if (was != pid) {
        tracees_.erase(pid);
        auto moved = tracees_.extract(was);
        if (!moved.empty()) {
            moved.key() = pid;
            moved.mapped().tid = pid;
            tracees_.insert(std::move(moved));
        }
        trace::go_on_by(pid, trace::goes_on_by(was));
        trace::go_on_by(was, PTRACE_CONT);
        for (auto& [tid, tracee] : tracees_) {
            if (tracee.tracer == was) tracee.tracer = pid;
        }
    }
    std::erase_if(tracees_, [&](const auto& one) {
        return one.second.process == pid && one.second.tid != pid;
    });
}

void Tracing::leave_exec(HomeThread& thread) {
    Tracee* tracee = find(thread.tid);
    if (tracee && tracee->has(PTRACE_O_TRACEEXEC)) {
        tell(*tracee, ptrace::stop_status(SIGTRAP, PTRACE_EVENT_EXEC));
        return;
    }
    if (tracee && !tracee->seized)
        send_to_itself(*tracee, SIGTRAP, Tracee::Expected::trap_after_exec);
    trace::resume(thread.tid);
}

bool Tracing::holds_end(const HomeThread& thread, int status) {
    Tracee* tracee = find(thread.tid);
    if (!tracee || !tracee->end_is_ours()) return false;
    tracee->state = Tracee::State::ended;
    tracee->status = status;
    tracee->held = true;
    tracee->waited_for = true;  // nobody can yet, while other threads are there
    tell_end_of_leader(tracee->process);
    if (tracee->tid != tracee->process) tell(*tracee, status);
    return true;
}

// A process has ended when its last thread has, but for its first one.
void Tracing::tell_end_of_leader(pid_t process) {
    Tracee* leader = find(process);
    if (!leader || leader->state != Tracee::State::ended || !leader->waited_for) return;
    HomeProcess* its = home_.find_process(process);
    if (its && its->threads.size() > its->threads.count(process)) return;
    tell(*leader, leader->status);
}

void Tracing::on_end(pid_t tid, pid_t process, WaitStatus status) {
    waits.on_end(tid);
    on_tracers_end(tid);
    makers_.erase(tid);
    Tracee* tracee = find(tid);
    if (tracee && !tracee->end_is_ours()) {
        tracees_.erase(tid);
    } else if (tracee && tracee->state != Tracee::State::ended) {
        tracee->state = Tracee::State::ended;
        tracee->status = status_of(status);
        tracee->waited_for = true;
        if (tid != process) tell(*tracee, tracee->status);
    } else if (tracee) {
        tracee->held = false;
    }
    trace::go_on_by(tid, PTRACE_CONT);
    tell_end_of_leader(process);
}

void Tracing::on_tracers_end(pid_t tracer) {
    std::vector<Tracee> left;
    for (const auto& [tid, tracee] : tracees_) {
        if (tracee.tracer == tracer) left.push_back(tracee);
    }
    for (const Tracee& tracee : left) {
        if (tracee.has(PTRACE_O_EXITKILL)) kill(tracee.process, SIGKILL);
        release(tracee.tid, 0);
    }
}

}  // namespace gpr::home
