#include "monitor/home/trace_calls.h"

#include <sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <sstream>

#include "base/file_text.h"
#include "base/log.h"
#include "monitor/home/calls.h"
#include "monitor/home/children.h"
#include "monitor/home/debugging.h"
#include "monitor/home/detachment.h"
#include "monitor/home/home.h"
#include "monitor/home/proxy_calls.h"
#include "monitor/home/resting.h"
#include "monitor/home/returns.h"
#include "monitor/home/stops.h"
#include "monitor/home/tracing.h"
#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/remote_memory_raw.h"
#include "monitor/tracee/resume_request.h"

namespace gpr::home {

using ptrace::Request;
using ptrace::Tracee;

namespace {

constexpr uint64_t sysemu = 31, sysemu_step = 32;  // PTRACE_SYSEMU, _SYSEMU_SINGLESTEP
constexpr int last_signal = 64;
constexpr uint64_t memory_flags = CLONE_VM | CLONE_VFORK | CLONE_THREAD;
// For a process to come home: it may be doing what it must end first, on a busy machine.
constexpr std::chrono::seconds patience{10};
constexpr std::chrono::milliseconds looks_every{2};
constexpr uint64_t capability_to_trace = 1ULL << 19;  // CAP_SYS_PTRACE

// The tracer's memory at home, where all of it is.
class MemoryAtHome : public ptrace::TracersMemory {
public:
    explicit MemoryAtHome(pid_t pid) : memory_(RemoteMemory::open(pid)) {}

    Task<bool> read(Address from, std::span<std::byte> bytes) override {
        co_return memory_ && memory_->read_exact(from, bytes.data(), bytes.size());
    }
    Task<bool> write(Address to, std::span<const std::byte> bytes) override {
        co_return memory_ && memory_->write_exact(to, bytes.data(), bytes.size());
    }

private:
    Result<RemoteMemory> memory_;
};

// The same of one that is split.
class SplitMemory : public ptrace::TracersMemory {
public:
    SplitMemory(Home& home, std::shared_ptr<Fragment> fragment)
        : home_(home), fragment_(std::move(fragment)) {}

    Task<bool> read(Address from, std::span<std::byte> bytes) override {
        co_return co_await home_.pager.memory.read(*fragment_, from, bytes);
    }
    Task<bool> write(Address to, std::span<const std::byte> bytes) override {
        co_return co_await home_.pager.memory.write(*fragment_, to, bytes);
    }

private:
    Home& home_;
    const std::shared_ptr<Fragment> fragment_;
};

struct Identity {
    std::array<uid_t, 3> users{}, groups{};  // real, effective, saved
    uint64_t capabilities = 0;
};

Identity identity_of(pid_t tid) {
    Identity found;
    std::istringstream in(text_of(fmt::format("/proc/{}/status", tid)));
    for (std::string line; std::getline(in, line);) {
        std::istringstream rest(line.substr(line.find(':') + 1));
        if (line.starts_with("Uid:")) rest >> found.users[0] >> found.users[1] >> found.users[2];
        if (line.starts_with("Gid:")) rest >> found.groups[0] >> found.groups[1] >> found.groups[2];
        if (line.starts_with("CapEff:")) rest >> std::hex >> found.capabilities;
    }
    return found;
}

bool is_all(const std::array<uid_t, 3>& ids, uid_t id) {
    return std::ranges::all_of(ids, [id](uid_t each) { return each == id; });
}

bool is_below(pid_t process, pid_t ancestor) {
    while (process > 1 && process != ancestor) process = parent_of(process);
    return process == ancestor;
}

// As a leak checker's child, which nobody shall trace, does in its parent's memory.
bool traces_its_parent(uint64_t clone_flags) {
    return (clone_flags & CLONE_UNTRACED) && (clone_flags & memory_flags) == CLONE_VM;
}

// Nothing of it is away, or on its way.
bool is_at_home(const HomeProcess& process) {
    const bool is_being_split = process.rest && process.rest->being_split;
    return process.state == HomeProcess::State::native && !process.fragment && !is_being_split;
}

// Yama: only descendants may be traced.
bool only_descendants() {
    const std::string scope = text_of("/proc/sys/kernel/yama/ptrace_scope");
    return !scope.empty() && scope[0] != '0';
}

bool resumes(uint64_t kind) {
    return kind == PTRACE_CONT || kind == PTRACE_SYSCALL || kind == PTRACE_SINGLESTEP ||
           kind == PTRACE_SINGLEBLOCK || kind == sysemu || kind == sysemu_step ||
           kind == PTRACE_DETACH;
}

}  // namespace

void TraceCalls::on_call(HomeThread& thread, const user_regs_struct& regs) {
    HomeProcess& process = *thread.process;
    if (process.rest && process.rest->being_split) {  // it calls again when it has been
        user_regs_struct before = regs;
        trace::take_call_back(thread.tid, before);
        trace::resume(thread.tid);
        return;
    }
    spawn(serve(process.pid, thread.tid, regs));
}

// It waits for an answer, and must stop to get other arguments.
Task<void> TraceCalls::call_without_untraced(pid_t pid, Notification n) {
    trace::interrupt(n.tid);
    home_.notifier->reply_raw(n.id, -trace::restart_nointr);
    WaitStatus status = co_await home_.stops.next_stop(*home_.find_thread(pid, n.tid), true);
    HomeThread* thread = home_.find_thread(pid, n.tid);
    if (!thread || status.ended()) co_return;
    auto regs = trace::registers(n.tid);
    const bool stands_before = regs && regs->orig_rax == SYS_clone &&
                               static_cast<long>(regs->rax) == -trace::restart_nointr;
    if (stands_before) {
        regs->rdi &= ~uint64_t{CLONE_UNTRACED};
        trace::set_registers(n.tid, *regs);
        with_untraced_.insert(n.tid);
    }
    if (status.kind == WaitStatus::Kind::trap_stop) {
        trace::resume(n.tid);
    } else {
        home_.on_wait(n.tid, status);
    }
}

bool TraceCalls::takes_clone(HomeThread& thread, user_regs_struct regs) {
    HomeProcess& process = *thread.process;
    if (regs.orig_rax != SYS_clone || !(regs.rdi & CLONE_UNTRACED)) return false;
    const bool rests = process.rest && !process.rest->being_split;
    const bool has_memory = (regs.rdi & memory_flags) == CLONE_VM;
    if (!process.stays_home && !(rests && has_memory)) return false;
    Tracing::keep_home(process);
    regs.rdi &= ~uint64_t{CLONE_UNTRACED};
    trace::set_registers(thread.tid, regs);
    with_untraced_.insert(thread.tid);
    trace::resume(thread.tid);
    return true;
}

bool TraceCalls::is_untraced(pid_t parent) {
    if (with_untraced_.erase(parent) == 0) return false;
    if (auto regs = trace::registers(parent)) {  // as it was called
        regs->rdi |= CLONE_UNTRACED;
        trace::set_registers(parent, *regs);
    }
    return true;
}

Task<void> TraceCalls::serve(pid_t pid, pid_t tid, user_regs_struct regs) {
    const Request request{regs.rdi, regs.rdx, regs.r10};
    HomeThread* thread = home_.find_thread(pid, tid);
    const int64_t result = co_await make(*thread, static_cast<pid_t>(regs.rsi), request);
    spdlog::trace("thread {}: ptrace({:#x}, {}, {:#x}, {:#x}) is {}", tid, request.kind,
                  static_cast<pid_t>(regs.rsi), request.address, request.data, result);
    thread = home_.find_thread(pid, tid);
    if (!thread || thread->ends()) co_return;
    if (trace::is_restart(result)) {
        trace::take_call_back(tid, regs);
    } else {
        regs.rax = static_cast<uint64_t>(result);
        regs.orig_rax = ~0UL;
        trace::set_registers(tid, regs);
    }
    trace::resume(tid);
}

bool TraceCalls::on_notification(const HomeThread& thread, const Notification& n) {
    if (thread.helper) return false;
    if (n.number == SYS_clone && thread.process->stays_home && traces_its_parent(n.args[0])) {
        spawn(call_without_untraced(thread.process->pid, n));
        return true;
    }
    const bool has_none = thread.process->cannot_be_traced || !thread.process->fragment;
    if (n.number == SYS_clone && traces_its_parent(n.args[0]) && !has_none) {
        trace::interrupt(n.tid);
        home_.notifier->reply_raw(n.id, -trace::restart_nointr);
        make_caller_ready(thread.process->pid, false);
        return true;
    }
    if (n.number != SYS_ptrace) return false;
    if (is_of_others(n.args[0], static_cast<pid_t>(n.args[1]))) return false;
    spawn(serve_notified(thread.process->pid, n));
    return true;
}

Task<void> TraceCalls::serve_notified(pid_t pid, Notification n) {
    const Request request{n.args[0], n.args[2], n.args[3]};
    const auto target = static_cast<pid_t>(n.args[1]);
    // Meanwhile the thread may have to stop and come home itself, and then calls again.
    int64_t result = co_await get_ready(pid, n.tid, target, request);
    if (!home_.notifier->still_valid(n.id)) co_return;
    if (trace::is_restart(result)) {
        // The kernel makes a call again only on the way to a signal or a stop.
        trace::interrupt(n.tid);
        home_.notifier->reply_raw(n.id, result);
        co_return;
    }
    std::shared_ptr<ProxyCall> call = co_await home_.proxy_calls.begin(pid, n);
    if (!call) co_return;
    if (result == 0) result = co_await act(*home_.find_thread(pid, n.tid), target, request);
    spdlog::trace("thread {}: ptrace({:#x}), as it reports, is {}", n.tid, request.kind, result);
    home_.proxy_calls.finish(pid, n, call, result);
}

Task<std::optional<int64_t>> TraceCalls::serve_forwarded(pid_t pid, pid_t tid,
                                                         std::array<uint64_t, 6> args) {
    const Request request{args[0], args[2], args[3]};
    if (is_of_others(request.kind, static_cast<pid_t>(args[1]))) co_return std::nullopt;
    HomeThread* thread = home_.find_thread(pid, tid);
    if (!thread) co_return -ESRCH;
    const int64_t result = co_await make(*thread, static_cast<pid_t>(args[1]), request);
    spdlog::trace("thread {}: ptrace({:#x}, {}, {:#x}, {:#x}) from an acceptor is {}", tid,
                  request.kind, static_cast<pid_t>(args[1]), request.address, request.data, result);
    co_return result;
}

// A tracer that `gpr attach` has taken may have tracees that are not in the session.
bool TraceCalls::is_of_others(uint64_t kind, pid_t target) const {
    return home_.call_stops && kind != PTRACE_TRACEME && !home_.threads.contains(target);
}

Task<int64_t> TraceCalls::make(HomeThread& thread, pid_t target, Request request) {
    const pid_t pid = thread.process->pid, tid = thread.tid;
    const int64_t ready = co_await get_ready(pid, tid, target, request);
    if (ready != 0) co_return ready;
    HomeThread* caller = home_.find_thread(pid, tid);
    if (!caller) co_return -ESRCH;
    co_return co_await act(*caller, target, request);
}

Task<int64_t> TraceCalls::act(HomeThread& thread, pid_t target, Request request) {
    const pid_t pid = thread.process->pid, tid = thread.tid;
    if (request.kind == PTRACE_TRACEME) co_return trace_me(pid, tid);
    if (request.kind == PTRACE_ATTACH || request.kind == PTRACE_SEIZE)
        co_return begin(pid, tid, target, request);
    Tracee* tracee = home_.debugging.tracing().find(target);
    if (!tracee || tracee->tracer != thread.tid || tracee->state == Tracee::State::ended)
        co_return -ESRCH;
    if (request.kind == PTRACE_KILL) {
        syscall(SYS_tgkill, tracee->process, target, SIGKILL);
        co_return 0;
    }
    if (request.kind == PTRACE_INTERRUPT)
        co_return tracee->seized ? interrupt(*tracee, false) : -EIO;
    if (tracee->state != Tracee::State::stopped) co_return -ESRCH;
    if (request.kind == PTRACE_LISTEN) {
        const bool may = tracee->seized && ptrace::event_in(tracee->status) == ptrace::event_stop;
        co_return may ? interrupt(*tracee, true) : -EIO;
    }
    if (resumes(request.kind)) co_return go_on(*tracee, request);
    if (request.kind == PTRACE_SETOPTIONS) co_return set_options(*tracee, request.data);
    // A group-stop has no signal, if it is not an event.
    const bool no_signal = tracee->by_job_control && !tracee->seized;
    if (request.kind == PTRACE_GETSIGINFO && no_signal) co_return -EINVAL;
    if (std::shared_ptr<Fragment> fragment = thread.process->fragment) {
        SplitMemory away(home_, fragment);
        const int64_t result = co_await ptrace::make_data_request(target, request, away);
        co_return result;
    }
    MemoryAtHome memory(thread.process->pid);
    co_return co_await ptrace::make_data_request(target, request, memory);
}

Task<int64_t> TraceCalls::get_ready(pid_t pid, pid_t tid, pid_t target, Request request) {
    if (request.kind == PTRACE_TRACEME) {
        const pid_t parent = parent_of(pid);
        if (home_.call_stops) co_return co_await leave_session(pid, parent);
        if (home_.debugging.tracing().find(tid) || !home_.find_process(parent)) co_return -EPERM;
        co_return co_await prepare(pid, parent, pid);
    }
    const bool seizes = request.kind == PTRACE_SEIZE;
    if (!seizes && request.kind != PTRACE_ATTACH) co_return 0;
    if (seizes && (request.address != 0 || request.data & ~ptrace::all_options)) co_return -EIO;
    const HomeThread* tracer = home_.find_thread(pid, tid);
    if (!tracer) co_return -ESRCH;
    auto thread = may_begin(*tracer, target);
    if (!thread) co_return -thread.error().code;
    const pid_t tracee = (*thread)->process->pid;
    if (home_.call_stops) co_return co_await leave_session(pid, tracee);
    co_return co_await prepare(pid, pid, tracee);
}

int64_t TraceCalls::trace_me(pid_t pid, pid_t tid) const {
    Tracing& tracing = home_.debugging.tracing();
    const pid_t parent = parent_of(pid);
    HomeThread* thread = home_.find_thread(pid, tid);
    HomeThread* tracer = home_.find_thread(parent, tracing.maker_of(pid));
    if (!tracer) tracer = home_.find_thread(parent, parent);
    if (!thread || !tracer || tracing.find(tid)) return -EPERM;
    tracing.begin(*tracer, *thread);
    return 0;
}

// Whoever traces or is traced, and is not where it can be, comes home for good. Returns 0, an
// error, or that the caller is to call again, from home.
Task<int64_t> TraceCalls::prepare(pid_t caller, pid_t tracer, pid_t tracee) {
    for (const pid_t pid : {tracee, tracer}) {
        HomeProcess* process = home_.find_process(pid);
        if (!process) co_return -ESRCH;
        if (pid == tracer ? may_be_tracer(*process) : is_at_home(*process)) continue;
        if (process->cannot_be_traced) co_return -EPERM;
        if (pid == caller) {
            make_caller_ready(pid, pid == tracer);
            co_return -trace::restart_nointr;
        }
        const bool ready = co_await make_ready(pid, pid == tracer);
        if (!ready) co_return -EPERM;
    }
    co_return 0;
}

// What `gpr attach` has taken can be released: both go on natively, and call again there.
Task<int64_t> TraceCalls::leave_session(pid_t caller, pid_t other) {
    if (HomeProcess* process = home_.find_process(other)) {
        const bool left = co_await home_.detachment.release(*process);
        if (!left) co_return -EPERM;
    }
    HomeProcess* process = home_.find_process(caller);
    if (!process || process->cannot_be_traced) co_return -EPERM;
    make_caller_ready(caller, true);
    co_return -trace::restart_nointr;
}

// Once its call has been answered.
void TraceCalls::make_caller_ready(pid_t pid, bool as_tracer) {
    if (!coming_home_.insert(pid).second) return;
    home_.loop.after(std::chrono::milliseconds(0), [this, pid, as_tracer] {
        auto make = [](TraceCalls& calls, pid_t its_pid, bool traces) -> Task<void> {
            HomeProcess* process = calls.home_.find_process(its_pid);
            if (process && calls.home_.call_stops) {
                const bool left = co_await calls.home_.detachment.release(*process);
                process = left ? nullptr : calls.home_.find_process(its_pid);
                if (process) process->cannot_be_traced = true;
            } else {
                co_await calls.make_ready(its_pid, traces);
            }
            calls.coming_home_.erase(its_pid);
        };
        spawn(make(*this, pid, as_tracer));
    });
}

// False if it cannot be, or not soon.
Task<bool> TraceCalls::make_ready(pid_t pid, bool as_tracer) {
    using State = HomeProcess::State;
    const auto until = Clock::now() + patience;
    const std::vector<pid_t> only{pid};
    for (;;) {
        HomeProcess* process = home_.find_process(pid);
        if (!process || process->finished) co_return false;
        if (as_tracer ? may_be_tracer(*process) : is_at_home(*process)) {
            if (is_at_home(*process)) Tracing::keep_home(*process);
            co_return true;
        }
        Result<void> done = fail("it is doing something else");
        if (process->state == State::split) {
            auto& returns = home_.resting.returns();
            done = co_await returns.bring_home(only, Returns::Until::needed_again);
        } else if (is_at_home(*process) && process->can_be_split()) {
            co_await home_.children.split_child(pid);  // its filter does not stop its waits
        }
        if (done) continue;
        if (Clock::now() > until) {
            process = home_.find_process(pid);
            if (process) process->cannot_be_traced = true;
            spdlog::info("process {} can neither trace nor be traced: {}", pid,
                         done.error().message());
            co_return false;
        }
        co_await home_.loop.sleep(looks_every);
    }
}

bool TraceCalls::brings_home_for_clone(HomeThread& thread, uint64_t flags) {
    HomeProcess& process = *thread.process;
    if (!traces_its_parent(flags) || process.cannot_be_traced) return false;
    home_.calls.reply(thread, -trace::restart_nointr);
    make_caller_ready(process.pid, false);
    return true;
}

// One whose waits we see: by a filter, or because all of it has gone.
bool TraceCalls::may_be_tracer(const HomeProcess& process) const {
    const bool reports_waits = process.listener && home_.policy.mixed();
    if (!process.fragment) return is_at_home(process) && (process.stops_waits || reports_waits);
    return process.state == HomeProcess::State::split;
}

// As the kernel decides for PTRACE_MODE_ATTACH_REALCREDS.
bool TraceCalls::may_trace(const HomeThread& tracer, const HomeThread& target) const {
    const Identity ours = identity_of(tracer.tid), theirs = identity_of(target.tid);
    if (ours.capabilities & capability_to_trace) return true;
    const pid_t pid = tracer.process->pid, other = target.process->pid;
    const bool same = is_all(theirs.users, ours.users[0]) && is_all(theirs.groups, ours.groups[0]);
    if (!same || theirs.capabilities & ~ours.capabilities) return false;
    const bool shares = tracer.process->shares_memory_with == target.process;
    return shares || !only_descendants() || is_below(other, pid);
}

Result<HomeThread*> TraceCalls::may_begin(const HomeThread& tracer, pid_t target) const {
    auto it = home_.threads.find(target);
    HomeThread* thread =
        it == home_.threads.end() || it->second->helper ? nullptr : it->second.get();
    if (!thread) return fail(kill(target, 0) == 0 || errno == EPERM ? EPERM : ESRCH, "");
    const bool is_own = thread->process == tracer.process;
    if (is_own || home_.debugging.tracing().find(target) || thread->ends()) return fail(EPERM, "");
    if (!may_trace(tracer, *thread)) return fail(EPERM, "");
    return thread;
}

int64_t TraceCalls::begin(pid_t pid, pid_t tid, pid_t target, Request request) const {
    const bool seizes = request.kind == PTRACE_SEIZE;
    HomeThread* tracer = home_.find_thread(pid, tid);
    if (!tracer) return -ESRCH;
    auto thread = may_begin(*tracer, target);
    if (!thread) return -thread.error().code;
    HomeProcess& process = *(*thread)->process;
    Tracee& tracee = home_.debugging.tracing().begin(*tracer, **thread);
    tracee.seized = seizes;
    tracee.options = seizes ? request.data : 0;
    if (!seizes) tracee.expected = Tracee::Expected::stop_of_attach;
    if (process.stopped) {
        trace::interrupt(target);
    } else if (!seizes) {
        syscall(SYS_tgkill, process.pid, target, SIGSTOP);
    }
    return 0;
}

int64_t TraceCalls::interrupt(Tracee& tracee, bool listens) const {
    if (listens) {
        tracee.state = Tracee::State::listens;
        trace::stay_stopped(tracee.tid);
        return 0;
    }
    tracee.to_interrupt = true;
    trace::interrupt(tracee.tid);
    return 0;
}

int64_t TraceCalls::go_on(Tracee& tracee, Request request) {
    if (request.data > last_signal) return -EIO;
    const int signal = static_cast<int>(request.data);
    if (request.kind == PTRACE_DETACH) {
        home_.debugging.tracing().release(tracee.tid, signal);
    } else {
        home_.debugging.tracing().resume(tracee, static_cast<int>(request.kind), signal);
    }
    return 0;
}

// The stop at the end of a vfork is one that the kernel tells only who asks for it.
int64_t TraceCalls::set_options(Tracee& tracee, uint64_t options) {
    if (options & ~ptrace::all_options) return -EINVAL;
    tracee.options = options;
    const long more = options & PTRACE_O_TRACEVFORKDONE ? PTRACE_O_TRACEVFORKDONE : 0;
    trace::set_options(tracee.tid, trace::home_options | more);
    return 0;
}

}  // namespace gpr::home
