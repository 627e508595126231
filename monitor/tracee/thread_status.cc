#include "monitor/tracee/thread_status.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "base/file_text.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/remote_memory_raw.h"

namespace gpr {

ThreadStatus status_of_thread(pid_t tid) {
    ThreadStatus status;
    const std::string stat = text_of(fmt::format("/proc/{}/stat", tid));
    const size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos || stat.size() < name_end + 3) return status;
    status.letter = stat[name_end + 2];
    // The CPU time of this thread; stat would show that of its whole process (proc_tgid_stat).
    status.cpu_ns =
        std::strtoull(text_of(fmt::format("/proc/{}/schedstat", tid)).c_str(), nullptr, 10);
    if (status.letter == 'R') return status;
    status.waits_in = text_of(fmt::format("/proc/{}/wchan", tid));
    if (status.waits_in == "0") status.waits_in.clear();
    // "running", or "-1 SP PC" outside of any system call, or "NR ARG... SP PC" (proc_pid_syscall).
    const std::string call = text_of(fmt::format("/proc/{}/syscall", tid));
    unsigned long sp = 0, pc = 0;
    int number = 0;
    if (std::sscanf(call.c_str(), "%d 0x%lx 0x%lx", &number, &sp, &pc) < 1) return status;
    if (number >= 0) {
        std::sscanf(call.c_str(), "%*d %*x %*x %*x %*x %*x %*x 0x%lx 0x%lx", &sp, &pc);
        status.call = number;
    }
    status.stack_pointer = sp;
    status.instruction = pc;
    return status;
}

std::optional<Standing> standing_of(pid_t tid) {
    const auto registers = trace::registers(tid);
    if (!registers) return std::nullopt;
    Standing standing{*registers, std::vector<std::byte>(most_stack_bytes)};
    const auto memory = RemoteMemory::open(tid);
    const size_t there =
        memory ? memory->read({registers->rsp}, standing.stack.data(), most_stack_bytes) : 0;
    standing.stack.resize(there);
    return standing;
}

}  // namespace gpr
