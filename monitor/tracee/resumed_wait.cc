#include "monitor/tracee/resumed_wait.h"

#include <linux/futex.h>
#include <linux/io_uring.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <fstream>
#include <iterator>
#include <tuple>

#include "base/fd.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/remote_memory_raw.h"
#include "monitor/tracee/resume_request.h"

namespace gpr {

namespace {

using std::chrono::nanoseconds;

enum class Limit {
    none,
    milliseconds,  // in the argument; negative: no limit
    timespec,      // at the argument's address; null: no limit
    receiving,     // SO_RCVTIMEO of the socket in the argument
    sending,       // SO_SNDTIMEO
    ring,          // in the struct that io_uring_enter gets
};

struct Wait {
    long number;
    Limit limit;
    unsigned argument;
    int over;  // its result at the timeout
};

constexpr Wait waits[] = {
    {SYS_epoll_wait, Limit::milliseconds, 3, 0},
    {SYS_epoll_pwait, Limit::milliseconds, 3, 0},
    {SYS_epoll_pwait2, Limit::timespec, 3, 0},
    {SYS_semop, Limit::none, 0, 0},
    {SYS_semtimedop, Limit::timespec, 3, -EAGAIN},
    {SYS_rt_sigtimedwait, Limit::timespec, 2, -EAGAIN},
    {SYS_io_getevents, Limit::timespec, 4, 0},
    {SYS_io_pgetevents, Limit::timespec, 4, 0},
    {SYS_io_uring_enter, Limit::ring, 4, -ETIME},
    {SYS_read, Limit::receiving, 0, -EAGAIN},
    {SYS_readv, Limit::receiving, 0, -EAGAIN},
    {SYS_recvfrom, Limit::receiving, 0, -EAGAIN},
    {SYS_recvmsg, Limit::receiving, 0, -EAGAIN},
    {SYS_recvmmsg, Limit::receiving, 0, -EAGAIN},
    {SYS_accept, Limit::receiving, 0, -EAGAIN},
    {SYS_accept4, Limit::receiving, 0, -EAGAIN},
    {SYS_write, Limit::sending, 0, -EAGAIN},
    {SYS_writev, Limit::sending, 0, -EAGAIN},
    {SYS_sendto, Limit::sending, 0, -EAGAIN},
    {SYS_sendmsg, Limit::sending, 0, -EAGAIN},
    {SYS_sendmmsg, Limit::sending, 0, -EAGAIN},
    {SYS_sendfile, Limit::sending, 0, -EAGAIN},
    {SYS_connect, Limit::sending, 0, -EINPROGRESS},
};

constexpr Wait restarted[] = {
    {SYS_poll, Limit::milliseconds, 2, 0},
    {SYS_nanosleep, Limit::timespec, 0, 0},
    {SYS_clock_nanosleep, Limit::timespec, 2, 0},
    {SYS_futex, Limit::timespec, 3, -ETIMEDOUT},
};

const Wait* wait_of(const user_regs_struct& regs) {
    auto number = static_cast<long>(regs.orig_rax);
    const Wait* found = std::ranges::find(waits, number, &Wait::number);
    return found == std::end(waits) ? nullptr : found;
}

auto arguments_of(const user_regs_struct& regs) {
    return std::array{regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9};
}

uint64_t sleeps_of(pid_t tid) {
    constexpr std::string_view name = "voluntary_ctxt_switches:";
    std::ifstream in(fmt::format("/proc/{}/status", tid));
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with(name)) return std::stoull(line.substr(name.size()));
    }
    return 0;
}

// A longer timeout is treated as none, so that the sum below cannot overflow.
constexpr std::chrono::hours long_time{24 * 365};

// The timeout at this address: nanoseconds::max() if there is none; nullopt if it cannot be read or
// is invalid.
std::optional<nanoseconds> time_at(pid_t pid, uint64_t address) {
    if (address == 0) return nanoseconds::max();
    timespec time{};
    auto memory = RemoteMemory::open(pid);
    if (!memory || !memory->read_exact({address}, &time, sizeof time)) return std::nullopt;
    bool sound = time.tv_sec >= 0 && time.tv_nsec >= 0 && time.tv_nsec < std::nano::den;
    if (!sound) return std::nullopt;
    if (time.tv_sec >= std::chrono::seconds(long_time).count()) return nanoseconds::max();
    return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

std::optional<nanoseconds> time_of_ring(pid_t pid, const user_regs_struct& regs) {
    if (!(regs.r10 & IORING_ENTER_EXT_ARG)) return nanoseconds::max();
    io_uring_getevents_arg more{};
    auto memory = RemoteMemory::open(pid);
    if (!memory || !memory->read_exact({regs.r8}, &more, sizeof more)) return std::nullopt;
    return time_at(pid, more.ts);
}

// A descriptor of the process.
Fd file_of(pid_t pid, int number) {
    Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!process) return {};
    return Fd(static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), number, 0)));
}

std::optional<nanoseconds> time_of_socket(pid_t pid, int number, int option) {
    const Fd file = file_of(pid, number);
    timeval time{};
    socklen_t size = sizeof time;
    if (!file) return std::nullopt;
    // Not a socket, so there is no timeout.
    if (getsockopt(file.get(), SOL_SOCKET, option, &time, &size) != 0) return nanoseconds::max();
    if (time.tv_sec == 0 && time.tv_usec == 0) return nanoseconds::max();
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

std::optional<nanoseconds> time_of(pid_t pid, const user_regs_struct& regs, const Wait& wait) {
    uint64_t argument = arguments_of(regs)[wait.argument];
    switch (wait.limit) {
        case Limit::none: return nanoseconds::max();
        case Limit::milliseconds: {
            auto ms = static_cast<int>(argument);
            if (ms < 0) return nanoseconds::max();
            return std::chrono::milliseconds(ms);
        }
        case Limit::timespec: return time_at(pid, argument);
        case Limit::receiving: return time_of_socket(pid, static_cast<int>(argument), SO_RCVTIMEO);
        case Limit::sending: return time_of_socket(pid, static_cast<int>(argument), SO_SNDTIMEO);
        case Limit::ring: return time_of_ring(pid, regs);
    }
    return std::nullopt;
}

// Its result at the timeout.
int result_when_over(pid_t pid, const user_regs_struct& regs, const Wait& wait) {
    int domain = 0;
    socklen_t size = sizeof domain;
    const bool is_unix = wait.number == SYS_connect &&
                         getsockopt(file_of(pid, static_cast<int>(regs.rdi)).get(), SOL_SOCKET,
                                    SO_DOMAIN, &domain, &size) == 0 &&
                         domain == AF_UNIX;
    return is_unix ? -EAGAIN : wait.over;  // connect(2)
}

}  // namespace

std::optional<TimeLimit> limit_of_restarted(pid_t pid, const user_regs_struct& regs) {
    const Wait* wait =
        std::ranges::find(restarted, static_cast<long>(regs.orig_rax), &Wait::number);
    if (wait == std::end(restarted)) return std::nullopt;
    const bool at_a_time =
        (wait->number == SYS_futex && (regs.rsi & FUTEX_CMD_MASK) != FUTEX_WAIT) ||
        (wait->number == SYS_clock_nanosleep && (regs.rsi & TIMER_ABSTIME));
    auto length = at_a_time ? std::nullopt : time_of(pid, regs, *wait);
    if (!length || *length >= long_time) return std::nullopt;
    return TimeLimit{wait->argument, wait->limit == Limit::timespec, *length};
}

bool is_interrupted_wait(const user_regs_struct& regs) {
    return static_cast<long>(regs.rax) == -EINTR && wait_of(regs) != nullptr;
}

void let_wait_end(pid_t tid) {
    auto regs = trace::registers(tid);
    if (!regs || !is_interrupted_wait(*regs)) return;
    regs->orig_rax = ~0UL;
    trace::set_registers(tid, *regs);
}

void make_wait_again(pid_t tid) {
    auto regs = trace::registers(tid);
    if (!regs || !is_interrupted_wait(*regs)) return;
    trace::rewind_interrupted_call(*regs);
    trace::set_registers(tid, *regs);
}

int64_t result_of_repeated(uint32_t number, int64_t result) {
    const bool waits_for_object = number == SYS_semop || number == SYS_semtimedop;
    return waits_for_object && result == -EINVAL ? -EIDRM : result;
}

std::optional<ResumedWait> ResumedWait::begin(pid_t process, pid_t tid,
                                              const user_regs_struct& regs,
                                              std::optional<Clock::time_point> begun) {
    auto time = time_of(process, regs, *wait_of(regs));
    if (!time) return std::nullopt;
    ResumedWait wait;
    wait.regs_ = regs;
    wait.begun_ = begun;
    wait.over_ = result_when_over(process, regs, *wait_of(regs));
    wait.sleeps_ = sleeps_of(tid);
    if (*time < long_time) wait.ends_ = begun.value_or(Clock::now()) + *time;
    return wait;
}

bool ResumedWait::is_interrupted(pid_t tid, const user_regs_struct& regs,
                                 std::optional<Clock::time_point> begun) const {
    auto place = [](const user_regs_struct& r) { return std::tuple(r.rip, r.rsp, r.orig_rax); };
    bool alike = is_interrupted_wait(regs) && place(regs) == place(regs_) &&
                 arguments_of(regs) == arguments_of(regs_) && (!begun || begun == begun_);
    // Since it was resumed, the thread has slept once in the call and once in its present stop, and
    // in stops before and after the call if there are any. If it has slept more often, this may be
    // a new call.
    const uint64_t slept = trace::goes_on_by(tid) == PTRACE_SYSCALL ? 4 : 2;
    return alike && (begun || sleeps_of(tid) <= sleeps_ + slept);
}

bool ResumedWait::is_about_to_begin(const user_regs_struct& regs) const {
    return regs.rip == regs_.rip - 2 && regs.rax == regs_.orig_rax;
}

bool ResumedWait::resume(pid_t tid, user_regs_struct regs) {
    if (is_about_to_begin(regs)) {  // another stop came before the call
        sleeps_ = sleeps_of(tid);
        return false;
    }
    bool over = Clock::now() >= ends_;
    if (over) {
        regs.rax = static_cast<uint64_t>(over_);
        regs.orig_rax = ~0UL;
    } else {
        trace::rewind_interrupted_call(regs);
        sleeps_ = sleeps_of(tid);
    }
    trace::set_registers(tid, regs);
    return over;
}

}  // namespace gpr
