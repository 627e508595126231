// proc(5): the files that tell of one process or thread, and their text as the program would read
// it if all of it were on one node. Pure but for proc_file_of().
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "monitor/node/usage.h"
#include "monitor/tracee/thread_state.h"

namespace gpr {

struct ProcFile {
    pid_t process = 0;
    pid_t thread = 0;  // 0: it is about the whole process
    std::string name;  // "status"
};

// A name that leads to none of them tells at once; one that may does not.
bool may_show_process(std::string_view path);
// Nothing: the descriptor is of something else, or closed. pid: whose descriptor.
std::optional<ProcFile> proc_file_of(pid_t pid, int fd);

// What the kernel at home does not count, or should not have.
struct Elsewhere {
    Usage used;         // by the process or thread that the file is about
    Usage by_children;  // that have been waited for
    std::optional<ThreadState> state;
    uint64_t hidden = 0;       // bytes of address space that are gpr's,
    uint64_t hidden_data = 0;  // and those of them that are private and writable
    struct Stack {
        uint64_t used = 0,
                 unused = 0;   // bytes: what the program has of it, and what it does not see
        uint64_t as_data = 0;  // bytes that the kernel takes for data
    };
    std::optional<Stack> stack;
    uint64_t locked = 0;  // bytes, by mlock, of which the kernel does not know
};

std::string status_with(const std::string& text, const Elsewhere& more);
std::string stat_with(const std::string& text, const Elsewhere& more);
std::string statm_with(const std::string& text, const Elsewhere& more);

}  // namespace gpr
