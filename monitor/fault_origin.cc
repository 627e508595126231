#include "monitor/fault_origin.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/fd.h"

namespace gpr {

FaultOrigin fault_origin(pid_t tid) {
    // "running", or "-1 SP PC" outside of any system call, or "NR ARG... SP PC" (proc_pid_syscall).
    Fd file(open(fmt::format("/proc/{}/syscall", tid).c_str(), O_RDONLY | O_CLOEXEC));
    char text[256];
    ssize_t got = file ? ::read(file.get(), text, sizeof text - 1) : -1;
    if (got <= 0) return {FaultOrigin::Kind::gone, 0};
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

}  // namespace gpr
