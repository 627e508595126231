/* Stops threads of members at the end of a call that opens or looks for a file by a name that
 * begins in a certain way. A member is a process that its supervisor has put into the map
 * `members`.
 *
 * It runs at the end of every system call of the host, so it looks at the number first. */

/* The helpers need the types, so these come first. */
/* clang-format off */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
/* clang-format on */

#include "bpf/name_layout.h"
#include "stub/layout.h"

#define SIGSTOP 19
/* A name that is longer, or has more parts, may be watched: it cannot be looked at to its end. */
#define LONGEST_NAME 256
#define DEEPEST_NAME 32

#define SYS_open 2
#define SYS_stat 4
#define SYS_access 21
#define SYS_creat 85
#define SYS_openat 257
#define SYS_newfstatat 262
#define SYS_faccessat 269
#define SYS_statx 332
#define SYS_openat2 437
#define SYS_faccessat2 439

char gpr_license[] SEC("license") = "GPL";

struct pt_regs {
    unsigned long di, si, orig_ax, ip;
} __attribute__((preserve_access_index));

struct task_struct {
    struct task_struct* group_leader;
} __attribute__((preserve_access_index));

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, __u32); /* whether it is a member; stored with the main thread */
} members SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 4096);
    __type(key, struct gpr_beginning);
    __type(value, __u32);
} beginnings SEC(".maps");

/* A name, and how it begins once "//", "/./" and "/../" in it are resolved. */
struct name {
    char given[LONGEST_NAME];
    __u32 bits; /* as in gpr_beginning, so that this can be looked up */
    char plain[GPR_BEGINNING_BYTES];
    __u32 size;  /* of the whole plain name */
    __u32 begin; /* of its last part, behind the slash */
    __u32 depth; /* how many parts are before that one */
    __u8 begins[DEEPEST_NAME];
    __u8 is_too_deep;
};

static __always_inline void add(struct name* name, char c) {
    if (name->size < GPR_BEGINNING_BYTES) name->plain[name->size] = c;
    name->size++;
}

/* The last part is complete, and stays or goes. `at`: the place behind it in the given name. */
static __always_inline void end_part(struct name* name, __u32 at) {
    const char before = name->given[(at - 1) % LONGEST_NAME];
    const char before2 = name->given[(at - 2) % LONGEST_NAME];
    const char before3 = name->given[(at - 3) % LONGEST_NAME];
    const __u32 size = name->size - name->begin;
    if (size == 0 || (size == 1 && before == '.' && before2 == '/')) {
        name->size = name->begin;
    } else if (size == 2 && before == '.' && before2 == '.' && before3 == '/') {
        if (name->depth > 0) name->begin = name->begins[--name->depth % DEEPEST_NAME];
        name->size = name->begin;
    } else if (name->depth == DEEPEST_NAME) {
        name->is_too_deep = 1;
    } else {
        name->begins[name->depth++ % DEEPEST_NAME] = name->begin;
        add(name, '/');
        name->begin = name->size;
    }
}

static long take_letter(__u32 at, struct name* name) {
    const char c = name->given[++at % LONGEST_NAME]; /* the first is a slash */
    if (c && c != '/') {
        add(name, c);
        return 0;
    }
    if (c) end_part(name, at);
    return !c || name->is_too_deep;
}

static __always_inline int is_watched(const char* at) {
    struct name name;
    __builtin_memset(&name, 0, sizeof name);
    const long size = bpf_probe_read_user_str(name.given, sizeof name.given, at);
    if (size < 0 || name.given[0] != '/') return 0; /* relative ones are never watched */
    add(&name, '/');
    name.begin = 1;
    bpf_loop(LONGEST_NAME - 1, take_letter, &name, 0);
    if (name.is_too_deep || size == LONGEST_NAME) return 1;
    name.bits = GPR_BEGINNING_BYTES * 8;
    return bpf_map_lookup_elem(&beginnings, &name.bits) != 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(call_ends, struct pt_regs* regs, long result) {
    const char* name;
    switch (regs->orig_ax) {
        case SYS_open:
        case SYS_stat:
        case SYS_access:
        case SYS_creat: name = (const char*)regs->di; break;
        case SYS_openat:
        case SYS_newfstatat:
        case SYS_faccessat:
        case SYS_statx:
        case SYS_openat2:
        case SYS_faccessat2: name = (const char*)regs->si; break;
        default: return 0;
    }
    struct task_struct* task = bpf_get_current_task_btf();
    const __u32* member = bpf_task_storage_get(&members, task->group_leader, 0, 0);
    if (!member || !*member) return 0;
    /* Calls in the stub are the supervisor's own. */
    if (regs->ip >> 32 == GPR_STUB_HIGH_WORD) return 0;
    if (is_watched(name)) bpf_send_signal_thread(SIGSTOP);
    return 0;
}
