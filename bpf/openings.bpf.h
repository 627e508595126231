/* Stops a thread at the end of a call that has opened a file of /proc that shows a process; its
 * supervisor then decides what the thread gets to read. */
#pragma once

#include "stub/layout.h"

#define SYS_open 2
#define SYS_creat 85
#define SYS_openat 257
#define SYS_openat2 437

struct fdtable {
    unsigned int max_fds;
    struct file** fd;
} __attribute__((preserve_access_index));

struct files_struct {
    struct fdtable* fdt;
} __attribute__((preserve_access_index));

struct super_block {
    unsigned long s_magic;
} __attribute__((preserve_access_index));

struct qstr {
    const unsigned char* name;
} __attribute__((preserve_access_index));

struct dentry {
    struct super_block* d_sb;
    struct qstr d_name;
} __attribute__((preserve_access_index));

struct path {
    struct dentry* dentry;
} __attribute__((preserve_access_index));

struct file {
    struct path f_path;
} __attribute__((preserve_access_index));

static __always_inline int is_opening(long number) {
    return number == SYS_open || number == SYS_creat || number == SYS_openat ||
           number == SYS_openat2;
}

/* Names as 8-byte numbers, whose last byte is always zero. */
#define LETTERS(a, b, c, d) ((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24)
#define NAME(a, b, c, d, e, f, g) (LETTERS(a, b, c, d) | LETTERS(e, f, g, 0) << 32)

static __always_inline int shows_process(__u64 name) {
    return name == NAME('m', 'e', 'm', 0, 0, 0, 0) || name == NAME('m', 'a', 'p', 's', 0, 0, 0) ||
           name == NAME('s', 'm', 'a', 'p', 's', 0, 0) ||
           name == NAME('s', 't', 'a', 't', 'u', 's', 0) ||
           name == NAME('s', 't', 'a', 't', 0, 0, 0) ||
           name == NAME('s', 't', 'a', 't', 'm', 0, 0) ||
           name == NAME('w', 'c', 'h', 'a', 'n', 0, 0) ||
           name == NAME('c', 'm', 'd', 'l', 'i', 'n', 'e') ||
           name == NAME('e', 'n', 'v', 'i', 'r', 'o', 'n') ||
           name == NAME('c', 'h', 'i', 'l', 'd', 'r', 'e'); /* children, cut to 7 letters */
}

static __always_inline void opening_ends(struct task_struct* task, struct pt_regs* regs, long fd) {
    /* Calls in the stub are the supervisor's own. */
    if (regs->ip >> 32 == GPR_STUB_HIGH_WORD) return;
    struct fdtable* table = BPF_CORE_READ(task, files, fdt);
    if (fd >= BPF_CORE_READ(table, max_fds)) return;
    struct file* file = 0;
    bpf_probe_read_kernel(&file, sizeof file, BPF_CORE_READ(table, fd) + fd);
    struct dentry* dentry = BPF_CORE_READ(file, f_path.dentry);
    if (BPF_CORE_READ(dentry, d_sb, s_magic) != PROC_SUPER_MAGIC) return;
    __u64 name = 0;
    bpf_probe_read_kernel_str(&name, sizeof name, BPF_CORE_READ(dentry, d_name.name));
    if (shows_process(name)) bpf_send_signal_thread(SIGSTOP);
}
