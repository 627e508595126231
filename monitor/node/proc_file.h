// proc(5): the files about one process or thread, with their text as it would be if all of it were
// on one node. Pure, except for proc_file_of().
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
    pid_t thread = 0;  // 0: about the whole process
    std::string name;  // "status"
};

// A quick test by name: false if the path cannot be such a file.
bool may_show_process(std::string_view path);
// nullopt if the descriptor is for something else, or closed. pid: the process with the descriptor.
std::optional<ProcFile> proc_file_of(pid_t pid, int fd);

// What home's kernel does not count because it is elsewhere, and what it counts but belongs to gpr.
struct Elsewhere {
    Usage used;         // by the process or thread that the file is about
    Usage by_children;  // of children that have been waited for
    std::optional<ThreadState> state;
    uint64_t hidden = 0;       // bytes of address space that belong to gpr,
    uint64_t hidden_data = 0;  // and how many of them are private and writable
    struct Stack {
        uint64_t used = 0,
                 unused = 0;   // bytes: what the program uses of it, and what it must not see
        uint64_t as_data = 0;  // bytes that the kernel counts as data
    };
    std::optional<Stack> stack;
    uint64_t locked = 0;  // bytes locked by mlock, unknown to the kernel
};

std::string status_with(const std::string& text, const Elsewhere& more);
std::string stat_with(const std::string& text, const Elsewhere& more);
std::string statm_with(const std::string& text, const Elsewhere& more);

}  // namespace gpr
