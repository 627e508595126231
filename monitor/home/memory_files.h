// /proc/PID/mem. The kernel reads and writes the memory at home through it, and does not wait for
// missing pages. So what a call is about to use is fetched first.
#pragma once

#include <cstdint>

#include "monitor/home/part.h"
#include "syscall/marshal.h"

namespace gpr::home {

class MemoryFiles {
public:
    explicit MemoryFiles(Home& home) : home_(home) {}

    Task<void> note_opened(HomeProcess& process, StubThread& stub, int fd);
    Task<void> bring_for_memory_file(HomeProcess& process, uint32_t number, SyscallArguments args);
    [[nodiscard]] bool in_use() const { return in_use_; }

private:
    Home& home_;
    bool in_use_ = false;  // a process has opened a /proc/PID/mem
};

}  // namespace gpr::home
