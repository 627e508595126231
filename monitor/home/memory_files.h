// /proc/PID/mem: what the kernel reads and writes there is the memory at home, and it does not wait
// for what is missing. So what a call is about to use is brought home first.
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
    bool in_use_ = false;  // somebody opened a /proc/PID/mem
};

}  // namespace gpr::home
