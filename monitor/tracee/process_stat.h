// proc(5): what the kernel says of a process or thread.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpr {

// The fields of the stat file that follow the name (which may contain anything), beginning with the
// state. Empty if the process is gone. folder: /proc/PID or /proc/PID/task/TID, with ids as this
// supervisor sees them.
std::vector<std::string> stat_fields(const std::string& folder);

// 0 if it has none or is gone.
pid_t parent_of(pid_t pid);

// All that are below it now, also those that end just then.
std::vector<pid_t> descendants_of(pid_t pid);

// Whether it has been killed, or its main thread is ending, or it is gone.
bool is_being_killed(pid_t pid);

// How the scheduler sees a thread: its state as in the stat file, and the processor that it runs on
// or ran on last. nullopt if it is gone.
struct Scheduled {
    char state = 'R';
    int processor = 0;
};
std::optional<Scheduled> scheduled(pid_t tid);

// Whether a signal to the process is pending that its main thread does not block. The kernel gives
// it to the main thread if that can take it, so this thread is to go on before the others.
bool main_has_signals(pid_t pid);

// How many pages of its memory are in memory here.
uint64_t resident_pages(pid_t pid);
// How many pages count against a limit of memory, RLIMIT_AS or RLIMIT_DATA; of data, the stacks
// that grow as well.
uint64_t limited_pages(pid_t pid, int resource);

// RLIMIT_* of a process, even one of another user, where prlimit(2) would need CAP_SYS_RESOURCE.
// nullopt if it is gone.
std::optional<rlimit> limit_of(pid_t pid, int resource);

// Whether timer_create(2) has made it a timer on CPU time. False if this kernel does not tell
// (CONFIG_CHECKPOINT_RESTORE).
bool has_created_cpu_timer(pid_t pid);

// What fdinfo says of a descriptor, such as "flags:"; empty if it has none, or is closed.
std::string descriptor_info(pid_t pid, int fd, std::string_view name);
int descriptor_flags(pid_t pid, int fd);  // of open(2), O_CLOEXEC included; 0 if it is closed

}  // namespace gpr
