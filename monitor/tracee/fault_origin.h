// Where a thread is that waits for a page.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <chrono>
#include <cstdint>

#include "base/task.h"
#include "mm/address_space.h"
#include "transport/loop.h"

namespace gpr {

// How long a thread that came for memory of this node runs whatever code here: long enough to be
// worth the way.
inline constexpr std::chrono::milliseconds visit_time{1};
// At the acceptor, where even the code that it runs has to be brought first.
inline constexpr std::chrono::milliseconds visit_time_away{10};

struct FaultOrigin {
    enum class Kind {
        program,  // an instruction of the program's at `instruction`
        kernel,   // the kernel, in one of its system calls: it cannot be stopped there
        unknown,  // it runs, or is on its way to sleep: ask again; or nobody may look
        gone,
    };
    Kind kind = Kind::gone;
    uint64_t instruction = 0;
    long call = -1;      // kernel: the system call
    uint64_t stack = 0;  // its stack pointer; kernel: where the call was made
};

// From /proc/TID/syscall, without stopping the thread. tid: in the supervisor's namespace.
FaultOrigin fault_origin(pid_t tid);
// The same of a thread that is asleep within microseconds, unless it lost its CPU on the way. Who
// still runs after a millisecond has had its page from elsewhere: unknown.
Task<FaultOrigin> settled_origin(Loop& loop, pid_t tid);

// Whether an instruction fetch, not an access to data, can have caused the fault on a page.
// x86 instructions have at most 15 bytes; one that begins on the page before faults there.
constexpr bool may_be_fetch(uint64_t instruction, uint64_t page, uint64_t page_bytes) {
    return instruction + 14 >= page && instruction < page + page_bytes;
}

// A stopped thread is not in a system call.
inline bool in_program(const user_regs_struct& regs) {
    return static_cast<long>(regs.orig_rax) < 0;
}

// Whether it has done nothing since: neither a step of a string instruction, nor a push.
inline bool stands_still(const user_regs_struct& before, const user_regs_struct& now) {
    return now.rip == before.rip && now.rsp == before.rsp && now.rcx == before.rcx &&
           now.rsi == before.rsi && now.rdi == before.rdi;
}

// It may be one that got the page and went on before it stopped.
inline bool stands_at_fetch(const user_regs_struct& regs, AddressSpace& space, Address page) {
    Mapping* code = space.find({regs.rip});
    return in_program(regs) && code && code->trapped &&
           may_be_fetch(regs.rip, page.value, page_size);
}

}  // namespace gpr
