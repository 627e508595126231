// Where a thread that waits for a page is.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <sys/user.h>

#include <chrono>
#include <cstdint>

#include "base/task.h"
#include "mm/address_space.h"
#include "transport/loop.h"

namespace gpr {

// How long a thread that came to this node for its memory stays here and runs whatever code
// follows: long enough to be worth the crossing.
inline constexpr std::chrono::milliseconds visit_time{1};
// The same at the acceptor, where the code that the thread runs has to be fetched first.
inline constexpr std::chrono::milliseconds visit_time_away{10};

struct FaultOrigin {
    enum class Kind {
        program,  // an instruction of the program, at `instruction`
        kernel,   // the kernel, in a system call of the thread; it cannot be stopped there
        unknown,  // running or about to sleep, so ask again; or we may not look
        gone,
    };
    Kind kind = Kind::gone;
    uint64_t instruction = 0;
    long call = -1;      // kernel: the system call
    uint64_t stack = 0;  // stack pointer; for `kernel`, at the time of the call
};

// From /proc/TID/syscall, without stopping the thread. tid: in the supervisor's namespace.
FaultOrigin fault_origin(pid_t tid);
// The same for a thread that will be asleep within microseconds unless it was preempted on the way.
// `unknown` if it still runs after a millisecond: then it got its page in some other way.
Task<FaultOrigin> settled_origin(Loop& loop, pid_t tid);

// Whether the fault on `page` can come from an instruction fetch rather than a data access. x86
// instructions have at most 15 bytes, so one may begin on the page before.
constexpr bool may_be_fetch(uint64_t instruction, uint64_t page, uint64_t page_bytes) {
    return instruction + 14 >= page && instruction < page + page_bytes;
}

// Whether an instruction of the thread has raised the signal, and will again if it is resumed.
inline bool is_raised_by_instruction(const siginfo_t& info) {
    switch (info.si_signo) {
        case SIGSEGV:
        case SIGBUS:
        case SIGFPE:
        case SIGILL:
        case SIGTRAP: return info.si_code > 0;
        default: return false;
    }
}

// Whether a stopped thread is outside of system calls.
inline bool in_program(const user_regs_struct& regs) {
    return static_cast<long>(regs.orig_rax) < 0;
}

// Whether the thread has made no progress between the two: not even one iteration of a string
// instruction, or a push.
inline bool stands_still(const user_regs_struct& before, const user_regs_struct& now) {
    return now.rip == before.rip && now.rsp == before.rsp && now.rcx == before.rcx &&
           now.rsi == before.rsi && now.rdi == before.rdi;
}

// Whether a stopped thread still waits to fetch an instruction from `page`. It may instead have got
// the page and run on before it stopped.
inline bool stands_at_fetch(const user_regs_struct& regs, AddressSpace& space, Address page) {
    Mapping* code = space.find({regs.rip});
    return in_program(regs) && code && code->trapped &&
           may_be_fetch(regs.rip, page.value, page_size);
}

}  // namespace gpr
