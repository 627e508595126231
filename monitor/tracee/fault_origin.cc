#include "monitor/tracee/fault_origin.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/fd.h"

namespace gpr {

namespace {
constexpr std::chrono::microseconds falls_asleep_in{20};
constexpr int most_looks = 50;
}  // namespace

FaultOrigin fault_origin(pid_t tid) {
    // "running", or "-1 SP PC" outside of any system call, or "NR ARG... SP PC" (proc_pid_syscall).
    Fd file(open(fmt::format("/proc/{}/syscall", tid).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return {errno == ENOENT ? FaultOrigin::Kind::gone : FaultOrigin::Kind::unknown};
    char text[256];
    ssize_t got = ::read(file.get(), text, sizeof text - 1);
    bool gone = got == 0 || (got < 0 && errno == ESRCH);
    if (got <= 0) return {gone ? FaultOrigin::Kind::gone : FaultOrigin::Kind::unknown};
    text[got] = 0;
    long number = 0;
    unsigned long sp = 0, pc = 0;
    if (std::sscanf(text, "%ld 0x%lx 0x%lx", &number, &sp, &pc) < 1) {
        return {FaultOrigin::Kind::unknown, 0};
    }
    if (number == -1) return {FaultOrigin::Kind::program, pc, -1, sp};
    std::sscanf(text, "%*d %*x %*x %*x %*x %*x %*x 0x%lx", &sp);
    return {FaultOrigin::Kind::kernel, 0, number, sp};
}

Task<FaultOrigin> settled_origin(Loop& loop, pid_t tid) {
    FaultOrigin origin = fault_origin(tid);
    for (int looks = 1; origin.kind == FaultOrigin::Kind::unknown && looks < most_looks; looks++) {
        OneShot<bool> later(loop);
        loop.after(falls_asleep_in, [&later] { later.set(true); });
        co_await later;
        origin = fault_origin(tid);
    }
    co_return origin;
}

}  // namespace gpr
