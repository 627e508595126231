#include "monitor/tracee/infection.h"

#include <asm/prctl.h>
#include <dirent.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/remote_memory_raw.h"
#include "monitor/tracee/resume_request.h"
#include "monitor/tracee/resumed_wait.h"
#include "stub/layout.h"

namespace gpr {

namespace {

using std::chrono::steady_clock;

constexpr auto get_rseq_request = static_cast<__ptrace_request>(0x420f);
// If SIGTRAP were blocked while we single-step, the kernel would reset the program's handler.
constexpr uint64_t all_but_trap = ~(1ULL << (SIGTRAP - 1));
constexpr std::chrono::microseconds between_looks{100}, between_steps{5};
// Most calls return within some microseconds, in which no timer fires.
constexpr unsigned looks_without_sleep = 300;
constexpr std::chrono::milliseconds longest_taking{10};
constexpr std::chrono::seconds longest_call{5};  // none of the calls waits for another process

std::vector<pid_t> threads_of(pid_t pid) {
    std::vector<pid_t> tids;
    const std::string folder = fmt::format("/proc/{}/task", pid);
    std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
    while (const dirent* entry = dir ? readdir(dir.get()) : nullptr) {
        if (const int tid = std::atoi(entry->d_name)) tids.push_back(tid);
    }
    // The main thread first.
    std::ranges::stable_partition(tids, [pid](pid_t tid) { return tid == pid; });
    return tids;
}

// The kernel would give signals to whichever thread runs first.
void let_take_signals(pid_t main) {
    const auto until = steady_clock::now() + longest_taking;
    while (main_has_signals(main) && steady_clock::now() < until) {
        std::this_thread::sleep_for(between_steps);
    }
}

// For the error message: what keeps the thread from stopping.
std::string what_it_does(pid_t pid, pid_t tid) {
    std::string wchan, call;
    std::getline(std::ifstream(fmt::format("/proc/{}/task/{}/wchan", pid, tid)), wchan);
    std::getline(std::ifstream(fmt::format("/proc/{}/task/{}/syscall", pid, tid)), call);
    return fmt::format("call {}, waiting in {}", call.substr(0, call.find(' ')),
                       wchan.empty() || wchan == "0" ? "the kernel" : wchan);
}

// Lets a call proceed that the filter has reported or is about to report.
void let_call_run(int listener) {
    pollfd reported{listener, POLLIN, 0};
    if (poll(&reported, 1, 1 /* ms */) != 1 || !(reported.revents & POLLIN)) return;
    seccomp_notif n{};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n) != 0) return;
    seccomp_notif_resp go_on{n.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &go_on);
}

bool is_end(const WaitStatus& stop) {
    return stop.ended() ||
           (stop.kind == WaitStatus::Kind::event && stop.value == PTRACE_EVENT_EXIT);
}

tl::unexpected<Error> process_ended() {
    return fail(ESRCH, "the process ended while it was being taken over");
}

}  // namespace

Infection::Infection(Infection&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      since_(other.since_),
      threads_(std::exchange(other.threads_, {})),
      own_instruction_(other.own_instruction_),
      syscall_instruction_(other.syscall_instruction_),
      room_(std::exchange(other.room_, {})),
      unlocked_(std::move(other.unlocked_)),
      lock_of_new_(other.lock_of_new_),
      listener_(std::move(other.listener_)),
      serve_(std::move(other.serve_)),
      ends_(std::exchange(other.ends_, {})),
      ended_(other.ended_) {}

Infection::Infection(Taken taken)
    : pid_(taken.pid), threads_(std::move(taken.threads)), listener_(std::move(taken.listener)) {
    (void)prepare_calls();
}

Infection::~Infection() { let_go(); }

Result<Infection> Infection::begin(pid_t pid, std::chrono::milliseconds patience) {
    Infection infection(pid);
    GPR_CHECK(infection.seize_all(steady_clock::now() + patience));
    GPR_CHECK(infection.prepare_calls());
    return infection;
}

Result<> Infection::seize_all(steady_clock::time_point until) {
    // A thread that still runs may create more.
    for (;;) {
        const size_t stopped = threads_.size();
        GPR_TRY(const bool any, seize_new());
        if (!any) break;
        for (size_t i = stopped; i < threads_.size(); i++) {
            GPR_CHECK(await_stop(threads_[i], until));
        }
        std::erase_if(threads_, [](const StoppedThread& thread) { return thread.tid == 0; });
    }
    if (threads_.empty() || threads_.front().tid != pid_) {
        return fail(ESRCH, fmt::format("process {} has ended, or its main thread has", pid_));
    }
    return {};
}

Result<bool> Infection::seize_new() {
    bool any = false;
    for (const pid_t tid : threads_of(pid_)) {
        if (std::ranges::find(threads_, tid, &StoppedThread::tid) != threads_.end()) continue;
        auto seized = trace::seize(tid, 0);
        if (!seized && seized.error().code == ESRCH) continue;  // it has ended, or is about to
        if (!seized) return tl::make_unexpected(seized.error());
        trace::interrupt(tid);
        StoppedThread thread;
        thread.tid = tid;
        threads_.push_back(thread);
        any = true;
    }
    return any;
}

// If the thread ends instead, its tid is set to 0.
Result<> Infection::await_stop(StoppedThread& thread, steady_clock::time_point until) {
    for (;;) {
        int status = 0;
        const pid_t got = waitpid(thread.tid, &status, WNOHANG | __WALL);
        if (got == 0) {
            if (steady_clock::now() > until) {
                return fail(ETIMEDOUT,
                            fmt::format("thread {} of process {} does not stop ({})", thread.tid,
                                        pid_, what_it_does(pid_, thread.tid)));
            }
            std::this_thread::sleep_for(between_looks);
            continue;
        }
        if (got < 0) {
            thread.tid = 0;
            return {};
        }
        const WaitStatus stop = WaitStatus::of(thread.tid, status);
        if (stop.ended()) {
            thread.tid = 0;
            return {};
        }
        if (stop.kind == WaitStatus::Kind::call_end) {
            trace::resume(thread.tid);
            trace::interrupt(thread.tid);
            continue;
        }
        if (stop.kind == WaitStatus::Kind::signal_stop) {  // a signal was delivered before our stop
            trace::resume(thread.tid, stop.value);
            continue;
        }
        thread.by_job_control = stop.kind == WaitStatus::Kind::group_stop;
        break;
    }
    GPR_TRY(thread.regs, trace::registers(thread.tid));
    thread.signal_mask = trace::signal_mask(thread.tid);
    return {};
}

// The main thread may have ended, and then its memory has gone with it.
Result<> Infection::prepare_calls() {
    GPR_TRY(const auto memory, RemoteMemory::open(threads_.front().tid));
    GPR_TRY(const auto maps, read_maps(threads_.front().tid));
    GPR_TRY(own_instruction_, find_syscall_instruction(maps, memory));
    syscall_instruction_ = own_instruction_;
    return {};
}

Result<int64_t> Infection::call(StoppedThread& thread, uint64_t number,
                                std::initializer_list<uint64_t> arguments) {
    if (ended_) return process_ended();
    uint64_t a[6] = {};
    std::ranges::copy(arguments, a);
    user_regs_struct regs = thread.regs;
    regs.rax = number, regs.orig_rax = ~0UL;
    regs.rdi = a[0], regs.rsi = a[1], regs.rdx = a[2], regs.r10 = a[3], regs.r8 = a[4];
    regs.r9 = a[5];
    regs.rip = syscall_instruction_.value;
    trace::set_signal_mask(thread.tid, all_but_trap);
    GPR_CHECK(trace::set_registers(thread.tid, regs));
    user_regs_struct after{};
    for (;;) {
        trace::single_step(thread.tid);
        GPR_TRY(const WaitStatus stop, await_step(thread.tid));
        // SIGSTOP cannot be blocked.
        thread.by_job_control |=
            stop.kind == WaitStatus::Kind::group_stop ||
            (stop.kind == WaitStatus::Kind::signal_stop && stop.value == SIGSTOP);
        GPR_TRY(after, trace::registers(thread.tid));
        const bool done = stop.kind == WaitStatus::Kind::signal_stop && stop.value == SIGTRAP;
        if (done && !trace::is_restart(static_cast<long>(after.rax))) break;
    }
    GPR_CHECK(trace::set_registers(thread.tid, thread.regs));
    trace::set_signal_mask(thread.tid, thread.signal_mask);
    return from_kernel(static_cast<long>(after.rax), "a system call made for the program");
}

Result<> Infection::close_descriptor(int number) {
    GPR_CHECK(call(threads_.front(), SYS_close, {static_cast<uint64_t>(number)}));
    return {};
}

// While we wait we must answer calls that the filter reports, because nothing else does yet.
Result<WaitStatus> Infection::await_step(pid_t tid) {
    const auto until = steady_clock::now() + longest_call;
    for (unsigned looks = 0;; looks++) {
        int status = 0;
        const pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
        if (got == 0 && looks < looks_without_sleep && !serve_ && !listener_) {
            sched_yield();
            continue;
        }
        if (got == 0 && steady_clock::now() > until) {
            return fail(ETIMEDOUT, fmt::format("thread {} of process {} does not come back from a "
                                               "system call that gpr makes in it",
                                               tid, pid_));
        }
        if (got == 0 && meets_end_beside(tid)) return process_ended();
        if (got == 0 && serve_) serve_();
        if (got == 0 && listener_) let_call_run(listener_.get());
        if (got == 0 && !listener_) std::this_thread::sleep_for(between_steps);
        if (got == 0) continue;
        const WaitStatus stop = WaitStatus::of(got, status);
        if (got == tid && !is_end(stop)) return stop;
        if (got == tid) ends_.push_back({tid, stop});
        ended_ = true;
        return process_ended();
    }
}

// The end of the main thread is not reported before the ends of all others, which are stopped: all
// that they can report is that the process was killed.
bool Infection::meets_end_beside(pid_t tid) {
    for (const StoppedThread& thread : threads_) {
        int status = 0;
        const bool other = thread.tid != 0 && thread.tid != tid;
        if (!other || waitpid(thread.tid, &status, __WALL | WNOHANG) != thread.tid) continue;
        ends_.push_back({thread.tid, WaitStatus::of(thread.tid, status)});
        ended_ |= is_end(ends_.back().status);
    }
    return ended_;
}

// A sock_fprog in the first page and then its filter, or whatever a call needs.
Result<> Infection::open_room() {
    GPR_TRY(const int64_t at,
            call(threads_.front(), SYS_mmap,
                 {0, room_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~0ULL, 0}));
    room_ = {static_cast<uint64_t>(at)};
    return {};
}

void Infection::close_room() {
    if (room_.value == 0) return;
    (void)call(threads_.front(), SYS_munmap, {std::exchange(room_, {}).value, room_size});
}

Result<> Infection::take_thread_state() {
    GPR_CHECK(open_room());
    GPR_TRY(const auto memory, RemoteMemory::open(pid_));
    for (StoppedThread& thread : threads_) {
        GPR_CHECK(call(thread, SYS_prctl, {PR_GET_TID_ADDRESS, room_.value}));
        if (!memory.read_exact(room_, &thread.clear_tid, sizeof thread.clear_tid)) {
            return fail(EIO, "cannot read what the program was told");
        }
        GPR_TRY(thread.cpu_modes, cpu_modes_of(thread, memory));
        thread.memory_policy = memory_policy_in(thread, memory, {});
        GPR_CHECK(forget_rseq(thread));
    }
    close_room();
    return {};
}

Result<CpuModes> Infection::cpu_modes_of(StoppedThread& thread, const RemoteMemory& memory) {
    CpuModes modes;
    GPR_CHECK(call(thread, SYS_prctl, {PR_GET_TSC, room_.value}));
    int tsc = PR_TSC_ENABLE;
    if (memory.read_exact(room_, &tsc, sizeof tsc) && tsc == PR_TSC_SIGSEGV) {
        modes.tsc = PR_TSC_SIGSEGV;
    }
    // If the CPU cannot trap CPUID, the kernel answers ENODEV.
    const auto works = call(thread, SYS_arch_prctl, {ARCH_GET_CPUID, 0});
    if (works && *works == 0) modes.cpuid = CpuModes::faults;
    return modes;
}

Result<> Infection::forget_rseq(StoppedThread& thread) {
    struct {  // struct ptrace_rseq_configuration, Linux 5.13
        uint64_t pointer;
        uint32_t size, signature, flags, pad;
    } its{};
    const long got = ptrace(get_rseq_request, thread.tid, sizeof its, &its);
    if (got < 0 || its.size == 0) return {};
    GPR_CHECK(call(thread, SYS_rseq, {its.pointer, its.size, rseq_unregister, its.signature}));
    thread.rseq = {its.pointer, its.size, its.signature};
    return {};
}

Result<std::vector<IntervalTimer>> Infection::take_cpu_timers() {
    GPR_CHECK(open_room());
    GPR_TRY(const auto memory, RemoteMemory::open(pid_));
    const uint64_t none = room_.value, before = none + sizeof(itimerval);
    for (const auto kind : {ITIMER_VIRTUAL, ITIMER_PROF}) {
        IntervalTimer timer{kind};
        GPR_CHECK(call(threads_.front(), SYS_setitimer, {timer.kind, none, before}));
        if (!memory.read_exact({before}, &timer.setting, sizeof timer.setting))
            return fail(EIO, "cannot read a timer");
        if (timer.armed()) disarmed_.push_back(timer);
    }
    close_room();
    return disarmed_;
}

Result<Infection::Taken> Infection::hand_over(long ptrace_options) {
    for (const StoppedThread& thread : threads_) {
        if (ptrace(PTRACE_SETOPTIONS, thread.tid, nullptr, ptrace_options) != 0) {
            ended_ = errno == ESRCH;
            if (ended_) return process_ended();
            return fail(errno, fmt::format("cannot trace thread {}", thread.tid));
        }
    }
    close_gate();
    return Taken{
        std::exchange(pid_, 0), std::exchange(threads_, {}), std::move(listener_), since_, {}};
}

Result<> Infection::unmap(Range range) {
    std::vector<Range> parts{range};
    const bool gate = syscall_instruction_ != own_instruction_;
    if (gate) parts = {{range.begin, {GPR_GATE}}, {{GPR_GATE + page_size}, range.end}};
    for (const Range& part : parts) {
        GPR_CHECK(call(threads_.front(), SYS_munmap, {part.begin.value, part.size()}));
    }
    return {};
}

void Infection::reap(std::span<const pid_t> children) {
    for (const pid_t child : children) {
        (void)call(threads_.front(), SYS_wait4,
                   {static_cast<uint64_t>(child), 0, __WALL | WNOHANG, 0});
    }
}

// A stack grows only by a fault, such as that of a system call that writes there.
Result<> Infection::grow_stack(Address to, std::span<const std::byte> content) {
    GPR_CHECK(call(threads_.front(), SYS_clock_gettime, {CLOCK_MONOTONIC, to.value}));
    GPR_TRY(const auto memory, RemoteMemory::open(threads_.front().tid));
    if (!memory.write_exact(to, content.data(), content.size())) {
        return fail(EIO, "cannot give the program its stack back");
    }
    return {};
}

// Restores state that the kernel dropped, or that it never had for a thread born on another node.
void Infection::tell_thread_state(StoppedThread& thread) {
    if (thread.clear_tid != 0) (void)call(thread, SYS_set_tid_address, {thread.clear_tid});
    for (const Call& mode : thread.cpu_modes.calls_from({})) {
        (void)call(thread, mode.number, {mode.args[0], mode.args[1]});
    }
    const RseqArea& rseq = thread.rseq;
    if (rseq.size != 0) {
        (void)call(thread, SYS_rseq, {rseq.address, rseq.size, 0, rseq.signature});
    }
}

void Infection::undo() {
    close_room();
    lock_as_before();
    if (!disarmed_.empty() && open_room()) {
        const auto memory = RemoteMemory::open(pid_);
        for (const auto& [kind, setting] : std::exchange(disarmed_, {})) {
            if (!memory || !memory->write_exact(room_, &setting, sizeof setting)) continue;
            (void)call(threads_.front(), SYS_setitimer, {kind, room_.value, 0});
        }
        close_room();
    }
    for (StoppedThread& thread : threads_) {
        if (thread.tid != 0) tell_thread_state(thread);
    }
    close_gate();
}

void Infection::let_go() {
    if (pid_ == 0 || threads_.empty()) return;
    undo();
    pid_ = 0;
    for (const StoppedThread& thread : threads_) {
        if (thread.tid == 0) continue;
        // After a stop by job control some waits end with EINTR natively, too.
        if (thread.by_job_control) let_wait_end(thread.tid);
        trace::detach(thread.tid);
        if (&thread == threads_.data() && threads_.size() > 1) let_take_signals(thread.tid);
    }
}

void Infection::give_back() {
    undo();
    pid_ = 0;
    threads_.clear();
}

}  // namespace gpr
