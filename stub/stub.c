/* The code that gpr puts into a program: it parks, makes the system calls that the supervisor
 * orders, and resumes the program. No libc, no static data, no vector registers; stub.ld fixes its
 * address. */
#include "layout.h"

#define NR_CLONE 56
#define NR_FORK 57
#define NR_VFORK 58
#define NR_CLONE3 435
#define NR_FUTEX 202
#define NR_ARCH_PRCTL 158
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define INT_MAX 0x7fffffff
#define ARCH_SET_GS 0x1001
#define ARCH_SET_FS 0x1002

/* In entry.S. A child of clone pops its slot address from its new stack and enters the stub. */
long gpr_syscall(const struct gpr_call* call);
void gpr_use_tiles(void);
void gpr_take_rest(uint32_t ds, uint32_t es, uint32_t id_flag);
void gpr_sigreturn(uint64_t frame) __attribute__((noreturn));

static long call4(uint64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    struct gpr_call call = {number, {a, b, c, d}, 0};
    return gpr_syscall(&call);
}

/* Until the supervisor has written an op. */
static void park(struct gpr_slot* slot) {
    if (!slot->by_futex) {
        /* It answers the call. An interrupted park is repeated. */
        while (call4(GPR_PARK, (uint64_t)slot, slot->done, 0, 0) != 0) continue;
        return;
    }
    __atomic_add_fetch(&slot->parks, 1, __ATOMIC_SEQ_CST);
    /* All, because one may be a wait that the supervisor is about to cancel. */
    call4(NR_FUTEX, (uint64_t)&slot->parks, FUTEX_WAKE, INT_MAX, 0);
    while (__atomic_load_n(&slot->given, __ATOMIC_SEQ_CST) == slot->taken) {
        call4(NR_FUTEX, (uint64_t)&slot->given, FUTEX_WAIT, slot->taken, 0);
    }
}

static void run_calls(struct gpr_slot* slot) {
    for (uint32_t i = 0; i < slot->count; i++) {
        struct gpr_call* call = &slot->calls[i];
        call->result = gpr_syscall(call);
        slot->done = i + 1;
        if (slot->stop_on_error && call->result < 0 && call->result >= -4095) break;
    }
}

__attribute__((noreturn)) void gpr_stub_main(struct gpr_slot* slot) {
    for (;;) {
        park(slot);
        slot->taken = slot->given;
        if (slot->op == GPR_OP_CALLS) {
            run_calls(slot);
        } else if (slot->op == GPR_OP_TILES) {
            gpr_use_tiles();
        } else if (slot->op == GPR_OP_REST) {
            gpr_take_rest(slot->ds, slot->es, slot->id_flag);
        } else if (slot->op == GPR_OP_RESUME) {
            if (slot->set_bases) {
                call4(NR_ARCH_PRCTL, ARCH_SET_FS, slot->fs_base, 0, 0);
                call4(NR_ARCH_PRCTL, ARCH_SET_GS, slot->gs_base, 0, 0);
            }
            gpr_take_rest(slot->ds, slot->es, slot->id_flag);
            gpr_sigreturn(slot->frame);
        }
    }
}
