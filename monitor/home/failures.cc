#include "monitor/home/failures.h"

#include <sys/syscall.h>

#include <csignal>
#include <optional>

#include "base/log.h"
#include "monitor/home/births.h"
#include "monitor/home/ends.h"
#include "monitor/home/home.h"
#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::home {

namespace {

constexpr std::chrono::seconds exit_patience{3};  // before SIGKILL

constexpr std::chrono::milliseconds end_patience{500};  // for a process that is being killed

// Why a stopped thread has stopped: PTRACE_EVENT_*, or 0; nullopt if it runs.
std::optional<int> event_of(pid_t tid) {
    auto info = trace::signal_info(tid);
    if (!info) return std::nullopt;
    return info->si_code > 0xff ? info->si_code >> 8 : 0;
}

}  // namespace

void Failures::abandon(const std::string& why) {
    if (!reason_.empty()) return;
    reason_ = why;
    spdlog::error("session abandoned: {}", why);
    home_.outputs.tell(why);
    for (auto& [pid, process] : home_.processes) process->started_remotely = false;
    home_.acceptors.each([&](RemoteNode& node) {
        for (auto& [pid, gone] : node.ending) gone->set(true);
        for (auto& [pid, start] : node.starting) start->done.set(why);
        for (auto& [pid, fork] : node.forking) fork->done.set(why);
    });
    for (auto& [pid, process] : home_.processes) doom(*process);
    home_.loop.after(exit_patience, [this] {
        for (auto& [pid, process] : home_.processes) kill(pid, SIGKILL);
    });
    if (home_.processes.empty()) home_.loop.stop();
}

// Whether the process has memory below what an acceptor allows. That is this program's problem and
// must not end the session.
bool Failures::is_too_low(HomeProcess& process) {
    if (!process.fragment || process.fragment->space.all().empty()) return false;
    const Mapping& lowest = process.fragment->space.all().begin()->second;
    const RemoteNode* refuses = nullptr;
    home_.acceptors.each([&](const RemoteNode& node) {
        if (lowest.range.begin < node.lowest) refuses = &node;
    });
    if (!refuses) return false;
    give_up(process,
            fmt::format("{} (process {}) has memory at {:#x}, and acceptor {} allows none below "
                        "{:#x}: link it at a higher address, or lower vm.mmap_min_addr there",
                        process.executable, process.pid, lowest.range.begin.value,
                        refuses->link.peer_name(), refuses->lowest.value));
    return true;
}

void Failures::could_not_split(pid_t pid, const Error& reason) {
    HomeProcess* asked = home_.find_process(pid);
    if (asked && is_too_low(*asked)) return;
    std::string why = fmt::format("cannot split process {}: {}", pid, reason.message());
    spdlog::debug("{}", why);
    home_.loop.after(end_patience, [this, pid, why] {
        HomeProcess* process = home_.find_process(pid);
        bool ends = !process || process->doomed || process->finished;
        if (!ends) abandon(why);
    });
}

void Failures::lost_track(const std::shared_ptr<Fragment>& of, const Error& reason) {
    std::string why = reason.message();
    spdlog::debug("process {}: {}", of->pid(), why);
    home_.loop.after(end_patience, [this, of, why] {
        const HomeProcess* process = home_.find_process(of->pid());
        bool ends = !process || process->doomed || process->finished || process->fragment != of ||
                    of->executor().dead();
        if (!ends) abandon(why);
    });
}

void Failures::give_up(HomeProcess& process, const std::string& why) {
    if (process.doomed || !reason_.empty()) return;
    spdlog::error("process {} given up: {}", process.pid, why);
    home_.outputs.tell(why);
    doom(process);
    home_.loop.after(exit_patience, [this, pid = process.pid] {
        HomeProcess* late = home_.find_process(pid);
        if (late && late->doomed) kill(pid, SIGKILL);
    });
}

void Failures::has_broken_ours(HomeProcess& process) {
    give_up(process,
            fmt::format("process {} ({}) cannot go on: it has broken the part of its memory "
                        "that is gpr's",
                        process.pid, command_name(process.pid)));
}

void Failures::doom(HomeProcess& process) {
    if (process.doomed) return;
    process.doomed = true;
    process.group_exit = true;
    if (process.fragment) home_.pager.faults.give_up(*process.fragment);
    for (auto& [tid, thread] : process.threads) {
        // Code that waits for this thread's stop is told that the thread is gone.
        if (thread->awaited) {
            std::exchange(thread->awaited, nullptr)->set({WaitStatus::Kind::killed, SIGKILL});
        }
        if (!thread->helper) press(*thread);
    }
    for (auto& [pid, other] : home_.processes) {
        if (other->shares_memory_with == &process) doom(*other);
    }
}

void Failures::press(HomeThread& thread) {
    auto event = event_of(thread.tid);
    if (!event) {
        trace::interrupt(thread.tid);
    } else if (*event == PTRACE_EVENT_STOP) {
        on_doomed_stop(thread, {WaitStatus::Kind::trap_stop, 0});
    } else if (*event == 0) {
        on_doomed_stop(thread, {WaitStatus::Kind::signal_stop, 0});
    } else if (*event != PTRACE_EVENT_EXIT) {  // a thread that is ending continues in finish()
        trace::resume(thread.tid);
        trace::interrupt(thread.tid);
    }
}

void Failures::on_doomed_stop(HomeThread& thread, WaitStatus status) {
    switch (status.kind) {
        case WaitStatus::Kind::signal_stop:
        case WaitStatus::Kind::call_end:
        case WaitStatus::Kind::group_stop:
        case WaitStatus::Kind::trap_stop: exit_here(thread); return;
        case WaitStatus::Kind::event:
            // The thread is inside a system call, which will still write its result.
            if (status.value == PTRACE_EVENT_EXIT) {
                spawn(home_.ends.finish(*thread.process, thread));
                return;
            }
            if (status.value == PTRACE_EVENT_EXEC) home_.ends.end_helpers(*thread.process);
            if (status.value == PTRACE_EVENT_CLONE || status.value == PTRACE_EVENT_FORK ||
                status.value == PTRACE_EVENT_VFORK) {
                home_.births.on_birth(thread, status.value);
            } else {
                trace::resume(thread.tid);
            }
            trace::interrupt(thread.tid);
            return;
        default:
            trace::resume(thread.tid);
            trace::interrupt(thread.tid);
            return;
    }
}

void Failures::exit_here(HomeThread& thread) {
    pid_t tid = thread.tid;
    auto leave = [&]() -> Result<void> {
        GPR_TRY(auto regs, trace::registers(tid));
        GPR_TRY(auto memory, RemoteMemory::open(tid));
        GPR_TRY(auto maps, read_maps(tid));
        GPR_TRY(auto instruction, find_syscall_instruction(maps, memory));
        regs.rip = instruction.value;
        regs.orig_rax = ~0UL;
        regs.rax = SYS_exit_group;
        regs.rdi = exit_gpr_failed;
        return trace::set_registers(tid, regs);
    };
    if (!leave()) kill(tid, SIGKILL);
    trace::resume(tid);
}

// A fragment at an acceptor has ended although home had not asked for it: it was killed, or ran out
// of memory.
void Failures::on_remote_end(RemoteNode& node, pid_t pid, const std::string& reason) {
    if (auto starting = node.starting.find(pid); starting != node.starting.end()) {
        starting->second->done.set(reason.empty() ? "it ended" : reason);
        return;
    }
    HomeProcess* process = home_.find_process(pid);
    if (!process || process->state != HomeProcess::State::split || !process->started_remotely) {
        return;
    }
    process->started_remotely = false;
    give_up(*process,
            fmt::format("process {} ({}) cannot go on: on {} it {}", pid, command_name(pid),
                        node.link.peer_name(), reason.empty() ? "ended" : reason));
}

void Failures::on_helper_end(HomeProcess& process, pid_t tid) {
    bool needed = process.state == HomeProcess::State::preparing ||
                  process.state == HomeProcess::State::split;
    bool ours = tid == process.fragment->page_mover_tid() ||
                tid == process.fragment->executor_tid() || tid == process.fragment->waker_tid();
    if (!needed || !ours || process.executing) return;
    if (is_being_killed(process.pid)) {
        // The helper was killed together with the process, for example by a kill of its cgroup.
        home_.pager.faults.give_up(*process.fragment);
        return;
    }
    give_up(process, fmt::format("process {} ({}) cannot go on: a helper of gpr in it was killed",
                                 process.pid, command_name(process.pid)));
}

}  // namespace gpr::home
