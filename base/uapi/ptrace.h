// <sys/ptrace.h>, and requests that the headers of glibc and of Linux 6.1 lack. glibc's enum and
// the macros of <linux/ptrace.h> conflict, so include only this header.
#pragma once

#include <sys/ptrace.h>

#include <cstdint>

#ifndef PTRACE_GET_RSEQ_CONFIGURATION  // 5.13
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif
#ifndef PTRACE_SET_SYSCALL_USER_DISPATCH_CONFIG  // 6.4
#define PTRACE_SET_SYSCALL_USER_DISPATCH_CONFIG 0x4210
#define PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG 0x4211
#endif
#ifndef PTRACE_SET_SYSCALL_INFO  // 6.16
#define PTRACE_SET_SYSCALL_INFO 0x4212
#endif

namespace gpr {

// What PTRACE_GET_RSEQ_CONFIGURATION fills in (struct ptrace_rseq_configuration).
struct RseqConfiguration {
    uint64_t rseq_abi_pointer;
    uint32_t rseq_abi_size;
    uint32_t signature;
    uint32_t flags;
    uint32_t pad;
};
static_assert(sizeof(RseqConfiguration) == 24);

}  // namespace gpr
