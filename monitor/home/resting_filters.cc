// Seccomp filters that a program at rest installs. The kernel gets them with the prologue that lets
// gpr's calls pass, so that the program can be split at any time later.
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "base/log.h"
#include "monitor/home/detachment.h"
#include "monitor/home/filters.h"
#include "monitor/home/home.h"
#include "monitor/home/resting.h"
#include "monitor/home/resting_calls.h"
#include "monitor/node/program_filter.h"
#include "monitor/tracee/infected_filters.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/remote_memory_raw.h"

namespace gpr::home {

namespace {

// A call that was taken back and is about to be made again.
Notification call_ahead(const HomeThread& thread, user_regs_struct regs) {
    regs.orig_rax = regs.rax;
    return call_of(thread, regs);
}

bool stands_before_call(pid_t pid, const user_regs_struct& regs) {
    std::array<uint8_t, 2> instruction{};
    const auto memory = RemoteMemory::open(pid);
    return memory && memory->read_exact({regs.rip}, instruction.data(), instruction.size()) &&
           instruction == std::array<uint8_t, 2>{0x0f, 0x05};
}

// As if it had made the call.
void answer_filter_call(pid_t tid, user_regs_struct& regs, int64_t result) {
    regs.rip += 2;
    regs.rax = static_cast<uint64_t>(result);
    trace::set_registers(tid, regs);
}

Task<bool> read_from(pid_t pid, Address at, std::span<std::byte> into) {
    const auto memory = RemoteMemory::open(pid);
    co_return memory && memory->read_exact(at, into.data(), into.size());
}

}  // namespace

// If only one of several threads is to have the filter, our own could not be installed for all of
// them later.
bool Resting::may_install_filter(const HomeProcess& process, const Notification& n) {
    const bool for_all = n.number == SYS_seccomp && (n.args[1] & SECCOMP_FILTER_FLAG_TSYNC) != 0;
    return installs_filter(n.number, n.args) && !asks_for_listener(n.number, n.args) &&
           (for_all || process.threads.size() == 1);
}

// The thread has not made its call yet. If the process cannot be stopped now, it calls again.
Task<void> Resting::install_filter(pid_t pid, pid_t tid) {
    HomeProcess* process = home_.find_process(pid);
    if (!process || process->finished || !process->rest || process->rest->being_split) co_return;
    process->rest->being_split = process->rest->waits_for_others = true;
    auto turn = co_await splits_.lock();
    process = home_.find_process(pid);
    if (!process || !process->rest || !process->rest->waits_for_others) co_return;
    process->rest->waits_for_others = false;
    if (process->stopped || home_.detachment.is_under_way()) {
        process->rest->being_split = false;
        co_return;
    }
    auto stopped = co_await stop_all(pid, Clock::now() + patience);
    process = home_.find_process(pid);
    if (!stopped || !process || !process->rest) co_return;
    process->rest->being_split = false;
    const bool done = co_await install_filter_in(*process, tid, *stopped);
    process = home_.find_process(pid);
    if (!process) co_return;
    if (!done) spawn(split(pid, "calls seccomp"));
    let_go_on(*process, *stopped);
}

// gpr makes its calls in a program at rest while it looks at the stops itself (Infection), and none
// in one that stays at home, so this call is the program's, to which nothing of gpr's is known.
void Resting::on_call_like_ours(const HomeThread& thread, user_regs_struct regs) {
    if (thread.process->rest || thread.process->stays_home) {
        regs.rax = static_cast<uint64_t>(regs.orig_rax == SYS_mmap ? -ENOMEM : -EPERM);
        regs.orig_rax = ~0UL;
        trace::set_registers(thread.tid, regs);
    }
    trace::resume(thread.tid);
}

// A vfork child cannot be split, but the program that it is about to execute can.
bool Resting::installs_before_exec(const HomeProcess& process, const Notification& n) {
    return process.shares_memory_with && !process.stays_home && may_install_filter(process, n) &&
           !Filters::is_probe(process, n);
}

// If it does not stop now, it calls again.
Task<void> Resting::install_filter_before_exec(pid_t pid) {
    HomeThread* thread = home_.find_thread(pid, pid);
    if (!thread) co_return;
    auto status = co_await stop_in_time(*thread, Clock::now() + patience);
    HomeProcess* process = home_.find_process(pid);
    if (!process || !status) co_return;
    auto context = capture_context(pid);
    if (status->kind != WaitStatus::Kind::trap_stop || !context) {
        home_.on_wait(pid, *status);
        co_return;
    }
    Stopped stopped;
    stopped[pid] = std::move(*context);
    const bool done = co_await install_filter_in(*process, pid, stopped);
    process = home_.find_process(pid);
    if (!process) co_return;
    if (!done) answer_filter_call(pid, stopped.at(pid).regs, -EINVAL);
    let_go_on(*process, stopped);
}

// False if the call is one that only a split process can make.
Task<bool> Resting::install_filter_in(HomeProcess& process, pid_t tid, Stopped& stopped) {
    HomeThread* caller = home_.find_thread(process.pid, tid);
    if (!caller || !stopped.contains(tid)) co_return true;
    user_regs_struct& regs = stopped.at(tid).regs;
    const Notification n = call_ahead(*caller, regs);
    // A signal may have come first.
    if (!stands_before_call(process.pid, regs) || !installs_filter(n.number, n.args) ||
        !may_install_filter(process, n)) {
        co_return true;
    }
    std::array<uint64_t, 6> args;
    std::ranges::copy(n.args, args.begin());
    ReadCaller read = [pid = process.pid](Address at, std::span<std::byte> into) {
        return read_from(pid, at, into);
    };
    const FilterCall call = co_await read_filter_call(std::move(read), n.number, args);
    if (!call.filter) co_return false;
    const auto result = make_filter_call(process, *caller, stopped, call);
    if (!result) {
        spdlog::debug("process {} is split for its filter: {}", process.pid,
                      result.error().message());
        co_return false;
    }
    if (*result == 0) Filters::note_installed(*caller, call);
    const bool hides_thread = *result > 0 && call.tells_no_thread;
    answer_filter_call(tid, regs, hides_thread ? -ESRCH : *result);
    co_return true;
}

// Returns what the kernel returns.
Result<int64_t> Resting::make_filter_call(HomeProcess& process, const HomeThread& caller,
                                          const Stopped& stopped, const FilterCall& call) {
    GPR_TRY(auto taken, taken_of(process.pid, stopped));
    Infection infection(std::move(taken));
    infection.serve_calls_by([this] { home_.notifier->poll(); });
    InfectedFilters filters(infection);
    InfectedFilters::Wanted its;
    its.code = with_prologue(*call.filter, SECCOMP_RET_TRACE | gpr_call_mark);
    its.flags = call.filter->flags;
    if (call.all_threads) its.flags |= SECCOMP_FILTER_FLAG_TSYNC;
    its.gives_up_privileges = call.strict;
    Result<> ready;
    if (Filters::has_any(process)) ready = filters.open_gate();
    Result<int64_t> result = tl::make_unexpected(Error{});
    if (ready) result = filters.install_for_program(caller.tid, its);
    bool met_stop = false;
    for (const StoppedThread& thread : infection.threads()) met_stop |= thread.by_job_control;
    process.threads.at(process.pid)->stop_met |= met_stop;
    infection.give_back();
    report_ends(infection);
    if (!ready) return tl::make_unexpected(ready.error());
    return result;
}

}  // namespace gpr::home
