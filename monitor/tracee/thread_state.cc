#include "monitor/tracee/thread_state.h"

#include <fmt/format.h>

#include "base/file_text.h"
#include "monitor/tracee/fault_origin.h"

namespace gpr {

namespace {

// Kernel functions in which a thread waits for our supervisor.
bool waits_for_us(const std::string& function) {
    return function.starts_with("handle_userfault") || function.starts_with("seccomp_") ||
           function.starts_with("__seccomp_");
}

}  // namespace

ThreadState thread_state(pid_t tid) {
    std::string stat = text_of(fmt::format("/proc/{}/stat", tid));
    size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos || stat.size() < name_end + 3) return {'X', "0"};
    char letter = stat[name_end + 2];
    if (letter == 't') return {};
    bool sleeps = letter == 'S' || letter == 'D' || letter == 'I';
    if (!sleeps) return {letter, "0"};
    std::string function = text_of(fmt::format("/proc/{}/wchan", tid));
    // Outside of system calls a thread can only wait for a page.
    bool in_call = fault_origin(tid).kind == FaultOrigin::Kind::kernel;
    if (!in_call || waits_for_us(function)) return {};
    return {letter, function.empty() ? "0" : function};
}

std::string state_in_words(char letter) {
    switch (letter) {
        case 'R': return "R (running)";
        case 'S': return "S (sleeping)";
        case 'D': return "D (disk sleep)";
        case 'T': return "T (stopped)";
        case 't': return "t (tracing stop)";
        case 'Z': return "Z (zombie)";
        default: return "X (dead)";
    }
}

}  // namespace gpr
