#include "syscall/filter_verdict.h"

#include <cstring>

#include "base/result.h"

namespace gpr {

uint32_t filter_verdict(std::span<const sock_filter> program, const seccomp_data& call) {
    uint32_t accumulator = 0;
    for (size_t at = 0;; at++) {
        GPR_ASSERT(at < program.size());
        const sock_filter& i = program[at];
        switch (i.code) {
            case BPF_LD | BPF_W | BPF_ABS:
                GPR_ASSERT(i.k <= sizeof call - sizeof accumulator);
                std::memcpy(&accumulator, reinterpret_cast<const std::byte*>(&call) + i.k,
                            sizeof accumulator);
                break;
            case BPF_JMP | BPF_JA: at += i.k; break;
            case BPF_JMP | BPF_JEQ | BPF_K: at += accumulator == i.k ? i.jt : i.jf; break;
            case BPF_JMP | BPF_JGE | BPF_K: at += accumulator >= i.k ? i.jt : i.jf; break;
            case BPF_JMP | BPF_JGT | BPF_K: at += accumulator > i.k ? i.jt : i.jf; break;
            case BPF_JMP | BPF_JSET | BPF_K: at += accumulator & i.k ? i.jt : i.jf; break;
            case BPF_ALU | BPF_AND | BPF_K: accumulator &= i.k; break;
            case BPF_RET | BPF_K: return i.k;
            default: GPR_ASSERT(false);
        }
    }
}

}  // namespace gpr
