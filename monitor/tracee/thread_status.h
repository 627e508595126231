// What the kernel reports about a thread at this moment, without stopping it.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpr {

struct ThreadStatus {
    char letter = 'X';     // as in /proc/PID/stat
    std::string waits_in;  // kernel function, as in /proc/PID/wchan; empty: it runs
    int32_t call = -1;     // system call in progress; -1: none
    uint64_t cpu_ns = 0;
    uint64_t stack_pointer = 0, instruction = 0;  // 0: unknown, because it runs
};

// tid: as this supervisor sees it.
ThreadStatus status_of_thread(pid_t tid);

// Where a stopped thread stands: its registers, and its stack from rsp on, as far as that is in
// memory here. Both are from the same stop, so that they fit each other.
struct Standing {
    user_regs_struct registers{};
    std::vector<std::byte> stack;
};
inline constexpr size_t most_stack_bytes = 16 << 10;
std::optional<Standing> standing_of(pid_t tid);

}  // namespace gpr
