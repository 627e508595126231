// What the kernel puts on the stack for a handler.
#pragma once

#include <signal.h>

#include <cstdint>

namespace gpr {

// How its struct ucontext begins (asm-generic/ucontext.h). It stands 8 bytes above where the
// handler begins to use the stack, and on top of it at rt_sigreturn.
struct SignalFrame {
    uint64_t flags, link;
    stack_t stack;  // sigaltstack, which rt_sigreturn sets again
    uint64_t context[32];
    uint64_t mask;
};

inline constexpr uint64_t return_address_size = 8;
inline constexpr unsigned ss_autodisarm = 1U << 31;  // linux/signal.h

}  // namespace gpr
