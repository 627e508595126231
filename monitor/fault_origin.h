// Where a thread is that waits for a page.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace gpr {

struct FaultOrigin {
    enum class Kind {
        program,  // an instruction of the program's at `instruction`
        kernel,   // the kernel, in one of its system calls: it cannot be stopped there
        unknown,  // it runs, or is on its way to sleep: ask again
        gone,
    };
    Kind kind = Kind::gone;
    uint64_t instruction = 0;
};

// From /proc/TID/syscall, without stopping the thread. tid: in the supervisor's namespace.
FaultOrigin fault_origin(pid_t tid);

// Whether an instruction fetch, not an access to data, can have caused the fault on a page.
// x86 instructions have at most 15 bytes; one that begins on the page before faults there.
constexpr bool may_be_fetch(uint64_t instruction, uint64_t page, uint64_t page_bytes) {
    return instruction + 14 >= page && instruction < page + page_bytes;
}

}  // namespace gpr
