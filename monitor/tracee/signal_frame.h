// What the kernel puts on the stack for a signal handler.
#pragma once

#include <signal.h>

#include <cstdint>

namespace gpr {

// The beginning of struct ucontext (asm-generic/ucontext.h). It lies 8 bytes above the stack
// pointer at the handler's entry, and at the stack pointer at rt_sigreturn.
struct SignalFrame {
    uint64_t flags, link;
    stack_t stack;  // rt_sigreturn restores sigaltstack from it
    uint64_t context[32];
    uint64_t mask;
};

inline constexpr uint64_t return_address_size = 8;
inline constexpr unsigned ss_autodisarm = 1U << 31;  // linux/signal.h

}  // namespace gpr
