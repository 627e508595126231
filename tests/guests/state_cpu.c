// What a processor holds for a thread: registers of every kind, across calls that wait and across
// computing, bases of segments, modes, thread-local data.
#include <asm/prctl.h>
#include <cpuid.h>
#include <fenv.h>
#include <math.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/rseq.h>

#include "state.h"

enum { VECTOR_BYTES = 16 * 32, WIDE_BYTES = 32 * 64, MASK_BYTES = 8 * 8 };

// The assembler below knows these by name.
struct timespec hold_pause = {0, 30000000};
int hold_go, hold_wrong, hold_wrong_fs, hold_mxcsr_in = 0xffc2, hold_mxcsr;
uint64_t hold_in[10], hold_out[10], hold_rax = 0x1122334455667788, hold_r11 = 0x99aabbccddeeff00;
uint64_t hold_flags, hold_fs, hold_fs_words[4] = {0, 0x6673206973206d65, 0, 0};
unsigned char hold_vectors_in[VECTOR_BYTES], hold_vectors_out[VECTOR_BYTES];
unsigned char hold_wide_in[WIDE_BYTES], hold_wide_out[WIDE_BYTES];
unsigned char hold_masks_in[MASK_BYTES], hold_masks_out[MASK_BYTES];
unsigned short hold_control_in = 0x0c7f, hold_control, hold_status;
long double hold_x87[3];

// Each sleeps and computes in turns until it is told to tell what it still has.
#define SLEEP "mov $35, %eax\n lea hold_pause(%rip), %rdi\n xor %esi, %esi\n syscall\n"
#define COMPUTE "mov $3000000, %rcx\n 2: dec %rcx\n jnz 2b\n"
#define UNTIL_GO "cmpl $0, hold_go(%rip)\n je 1b\n"
#define SAVED "push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
#define RESTORED "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n"

__asm__(".text\n hold_integers:\n" SAVED
        "mov hold_in(%rip), %rbx\n mov hold_in+8(%rip), %rdx\n mov hold_in+16(%rip), %rbp\n"
        "mov hold_in+24(%rip), %r8\n mov hold_in+32(%rip), %r9\n mov hold_in+40(%rip), %r10\n"
        "mov hold_in+48(%rip), %r12\n mov hold_in+56(%rip), %r13\n mov hold_in+64(%rip), %r14\n"
        "mov hold_in+72(%rip), %r15\n 1:\n" SLEEP
        "mov hold_rax(%rip), %rax\n mov hold_r11(%rip), %r11\n" COMPUTE
        "cmp hold_rax(%rip), %rax\n jne 3f\n cmp hold_r11(%rip), %r11\n jne 3f\n" UNTIL_GO
        "jmp 4f\n 3: movl $1, hold_wrong(%rip)\n 4:\n"
        "mov %rbx, hold_out(%rip)\n mov %rdx, hold_out+8(%rip)\n mov %rbp, hold_out+16(%rip)\n"
        "mov %r8, hold_out+24(%rip)\n mov %r9, hold_out+32(%rip)\n mov %r10, hold_out+40(%rip)\n"
        "mov %r12, hold_out+48(%rip)\n mov %r13, hold_out+56(%rip)\n mov %r14, hold_out+64(%rip)\n"
        "mov %r15, hold_out+72(%rip)\n" RESTORED);

// Backward strings and alignment checks.
__asm__("hold_flag_bits:\n" SAVED
        "pushfq\n orl $0x040400, (%rsp)\n popfq\n 1:\n" SLEEP COMPUTE UNTIL_GO
        "pushfq\n pop %rax\n mov %rax, hold_flags(%rip)\n"
        "pushfq\n andl $~0x040400, (%rsp)\n popfq\n" RESTORED);

// Another base of fs.
__asm__("hold_fs_base:\n" SAVED
        "mov $158, %eax\n mov $0x1003, %edi\n lea hold_fs(%rip), %rsi\n syscall\n"
        "mov $158, %eax\n mov $0x1002, %edi\n lea hold_fs_words(%rip), %rsi\n syscall\n"
        "1:\n" SLEEP COMPUTE
        "mov %fs:8, %rax\n cmp hold_fs_words+8(%rip), %rax\n je 3f\n"
        "movl $1, hold_wrong_fs(%rip)\n 3:\n" UNTIL_GO
        "mov $158, %eax\n mov $0x1002, %edi\n mov hold_fs(%rip), %rsi\n syscall\n" RESTORED);

#define EACH_16(word)                                                                        \
    word(0) word(1) word(2) word(3) word(4) word(5) word(6) word(7) word(8) word(9) word(10) \
        word(11) word(12) word(13) word(14) word(15)
#define EACH_MORE(word)                                                                       \
    word(16) word(17) word(18) word(19) word(20) word(21) word(22) word(23) word(24) word(25) \
        word(26) word(27) word(28) word(29) word(30) word(31)
#define EACH_MASK(word) word(0) word(1) word(2) word(3) word(4) word(5) word(6) word(7)
#define LOAD_X(n) "movups hold_vectors_in+" #n "*32(%rip), %xmm" #n "\n"
#define SAVE_X(n) "movups %xmm" #n ", hold_vectors_out+" #n "*32(%rip)\n"
#define LOAD_Y(n) "vmovups hold_vectors_in+" #n "*32(%rip), %ymm" #n "\n"
#define SAVE_Y(n) "vmovups %ymm" #n ", hold_vectors_out+" #n "*32(%rip)\n"
#define LOAD_Z(n) "vmovups hold_wide_in+" #n "*64(%rip), %zmm" #n "\n"
#define SAVE_Z(n) "vmovups %zmm" #n ", hold_wide_out+" #n "*64(%rip)\n"
#define LOAD_K(n) "kmovq hold_masks_in+" #n "*8(%rip), %k" #n "\n"
#define SAVE_K(n) "kmovq %k" #n ", hold_masks_out+" #n "*8(%rip)\n"
#define BODY SLEEP COMPUTE UNTIL_GO
__asm__("hold_xmm:\n" SAVED EACH_16(LOAD_X) "1:\n" BODY EACH_16(SAVE_X) RESTORED);
__asm__("hold_ymm:\n" SAVED EACH_16(LOAD_Y) "1:\n" BODY EACH_16(SAVE_Y) "vzeroupper\n" RESTORED);
__asm__("hold_zmm:\n" SAVED EACH_16(LOAD_Z) EACH_MORE(LOAD_Z)
            EACH_MASK(LOAD_K) "1:\n" BODY EACH_16(SAVE_Z) EACH_MORE(SAVE_Z)
                EACH_MASK(SAVE_K) "vzeroupper\n" RESTORED);

// Rounding, precision, masks and flags of both units; three values, and an inexact result.
__asm__(
    "hold_floats:\n" SAVED
    "fninit\n fldpi\n fldl2e\n fld1\n fldpi\n fdivrp %st, %st(1)\n fldcw hold_control_in(%rip)\n"
    "ldmxcsr hold_mxcsr_in(%rip)\n 1:\n" BODY
    "stmxcsr hold_mxcsr(%rip)\n fnstcw hold_control(%rip)\n fnstsw hold_status(%rip)\n"
    "fstpt hold_x87(%rip)\n fstpt hold_x87+16(%rip)\n fstpt hold_x87+32(%rip)\n fninit\n"
    "push $0x1f80\n ldmxcsr (%rsp)\n pop %rax\n" RESTORED);

extern void hold_integers(void), hold_flag_bits(void), hold_fs_base(void), hold_floats(void);
extern void hold_xmm(void), hold_ymm(void), hold_zmm(void);

static pthread_t threads[8];
static int thread_count;
static void* hold(void* function) {
    ((void (*)(void))function)();
    return NULL;
}
static void begin(void (*function)(void)) {
    EXPECT_EQ(state_thread(&threads[thread_count++], hold, (void*)function), 0);
}
static void end_all(void) {
    __atomic_store_n(&hold_go, 1, __ATOMIC_SEQ_CST);
    while (thread_count > 0) EXPECT_EQ(pthread_join(threads[--thread_count], NULL), 0);
}

static void set_integers(void) {
    guest_fill(hold_in, sizeof hold_in, 1);
    begin(hold_integers);
}
static void has_integers(void) {
    end_all();
    EXPECT(memcmp(hold_in, hold_out, sizeof hold_in) == 0);
    EXPECT_EQ(hold_wrong, 0);
}
static void set_flags(void) { begin(hold_flag_bits); }
static void has_flags(void) { EXPECT_EQ(hold_flags & 0x040400, 0x040400); }
static void set_fs(void) { begin(hold_fs_base); }
static void has_fs(void) { EXPECT_EQ(hold_wrong_fs, 0); }
static int has_avx;
static void set_vectors(void) {
    has_avx = __builtin_cpu_supports("avx");
    guest_fill(hold_vectors_in, VECTOR_BYTES, 2);
    begin(has_avx ? hold_ymm : hold_xmm);
}
static void has_vectors(void) {
    for (int i = 0; i < VECTOR_BYTES; i += has_avx ? 1 : i % 32 == 15 ? 17 : 1)
        EXPECT_EQ(hold_vectors_out[i], hold_vectors_in[i]);
}
static void set_wide(void) {
    errno = EOPNOTSUPP;
    POSSIBLE(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"));
    guest_fill(hold_wide_in, WIDE_BYTES, 3);
    guest_fill(hold_masks_in, MASK_BYTES, 4);
    begin(hold_zmm);
}
static void has_wide(void) {
    EXPECT(memcmp(hold_wide_in, hold_wide_out, WIDE_BYTES) == 0);
    EXPECT(memcmp(hold_masks_in, hold_masks_out, MASK_BYTES) == 0);
}
static void set_floats(void) { begin(hold_floats); }
static void has_mxcsr(void) { EXPECT_EQ(hold_mxcsr, 0xffc2); }
static void has_x87(void) {
    EXPECT_EQ(hold_control & 0x0f3f, 0x0c3f);
    EXPECT_EQ(hold_status & 0x3820, 0x2820);  // inexact, and three values
    EXPECT(fabsl(hold_x87[0] - 0.31830988618379067154L) < 1e-18L);
    EXPECT(fabsl(hold_x87[1] - 1.44269504088896340736L) < 1e-18L);
    EXPECT(fabsl(hold_x87[2] - 3.14159265358979323846L) < 1e-18L);
}

static volatile double one = 1, three = 3, third;
static void set_rounding(void) {
    EXPECT_EQ(fesetround(FE_UPWARD), 0);
    third = one / three;
    EXPECT_EQ(feclearexcept(FE_ALL_EXCEPT), 0);
    EXPECT_EQ(feraiseexcept(FE_OVERFLOW), 0);
}
static void has_rounding(void) {
    EXPECT_EQ(fegetround(), FE_UPWARD);
    EXPECT_EQ(fetestexcept(FE_OVERFLOW | FE_DIVBYZERO), FE_OVERFLOW);
    EXPECT(one / three == third && third * three > 1);
    EXPECT_EQ(fesetround(FE_TONEAREST), 0);
    EXPECT(one / three < third);
}

static uint64_t gs_words[2] = {0, 0x6773};
static void set_gs(void) { EXPECT_EQ(syscall(SYS_arch_prctl, ARCH_SET_GS, gs_words), 0); }
static void has_gs(void) {
    uint64_t base = 0, word = 0;
    EXPECT_EQ(syscall(SYS_arch_prctl, ARCH_GET_GS, &base), 0);
    EXPECT_EQ(base, (uintptr_t)gs_words);
    __asm__ volatile("mov %%gs:8, %0" : "=r"(word));
    EXPECT_EQ(word, 0x6773);
}

static __thread uint64_t local[100];
static pthread_key_t key;
static void* fs_base;
static void set_local(void) {
    guest_fill(local, sizeof local, 5);
    EXPECT_EQ(pthread_key_create(&key, NULL), 0);
    EXPECT_EQ(pthread_setspecific(key, gs_words), 0);
    EXPECT_EQ(syscall(SYS_arch_prctl, ARCH_GET_FS, &fs_base), 0);
}
static void has_local(void) {
    void* now = NULL;
    EXPECT(guest_is_filled(local, sizeof local, 5));
    EXPECT(pthread_getspecific(key) == gs_words);
    EXPECT_EQ(syscall(SYS_arch_prctl, ARCH_GET_FS, &now), 0);
    EXPECT(now == fs_base);
}

// Threads that may not ask for CPUID, or read the time stamp counter.
static pthread_t moded[2];
static sem_t moded_go[2], moded_ready;
static int moded_error, cpuid_faults, cpuid_state, tsc_faults, tsc_state;
static void ask(void) {
    unsigned a, b, c, d;
    __cpuid(0, a, b, c, d);
}
static void read_counter(void) { __builtin_ia32_rdtsc(); }
static int faults(void (*function)(void)) {
    struct sigaction action = {.sa_handler = state_on_fault, .sa_flags = SA_NODEFER}, old;
    sigaction(SIGSEGV, &action, &old);
    int fault = sigsetjmp(state_back, 1);
    if (fault == 0) function();
    sigaction(SIGSEGV, &old, NULL);
    return fault;
}
static void* not_ask(void* unused) {
    if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0) != 0) moded_error = errno;
    sem_post(&moded_ready);
    while (sem_wait(&moded_go[1]) != 0) continue;
    if (moded_error) return unused;
    cpuid_state = (int)syscall(SYS_arch_prctl, ARCH_GET_CPUID, 0);
    cpuid_faults = faults(ask);
    return unused;
}
static void* not_read(void* unused) {
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    sem_post(&moded_ready);
    while (sem_wait(&moded_go[0]) != 0) continue;
    prctl(PR_GET_TSC, &tsc_state, 0, 0, 0);
    tsc_faults = faults(read_counter);
    return unused;
}
static void begin_moded(int which, void* (*function)(void*)) {
    EXPECT(sem_init(&moded_go[which], 0, 0) == 0 && sem_init(&moded_ready, 0, 0) == 0);
    EXPECT_EQ(state_thread(&moded[which], function, NULL), 0);
    while (sem_wait(&moded_ready) != 0) continue;
}
static void set_no_counter(void) { begin_moded(0, not_read); }
static void has_no_counter(void) {
    EXPECT_EQ(sem_post(&moded_go[0]), 0);
    EXPECT_EQ(pthread_join(moded[0], NULL), 0);
    EXPECT_EQ(tsc_state, PR_TSC_SIGSEGV);
    EXPECT_EQ(tsc_faults, SIGSEGV);
    EXPECT_EQ(faults(read_counter), 0);
}
static void set_no_cpuid(void) {
    begin_moded(1, not_ask);
    errno = moded_error;
    POSSIBLE(moded_error == 0);
}
static void has_no_cpuid(void) {
    EXPECT_EQ(sem_post(&moded_go[1]), 0);
    EXPECT_EQ(pthread_join(moded[1], NULL), 0);
    EXPECT_EQ(cpuid_state, 0);
    EXPECT_EQ(cpuid_faults, SIGSEGV);
    EXPECT_EQ(faults(ask), 0);
}

// The tiles of AMX are for who has asked for them.
static unsigned long states;
static void set_tiles(void) {
    POSSIBLE(syscall(SYS_arch_prctl, 0x1022, &states) == 0);  // ARCH_GET_XCOMP_PERM
    POSSIBLE(syscall(SYS_arch_prctl, 0x1023, 18) == 0);       // ARCH_REQ_XCOMP_PERM
    EXPECT_EQ(syscall(SYS_arch_prctl, 0x1022, &states), 0);
}
static void has_tiles(void) {
    unsigned long now = 0;
    EXPECT_EQ(syscall(SYS_arch_prctl, 0x1022, &now), 0);
    EXPECT(now == states && (now >> 18 & 1));
}

// Whether there is such an area at all, it can be given up and had again as before.
static int rseq_results[2];
static void try_rseq(int* results) {
    char* area = (char*)__builtin_thread_pointer() + __rseq_offset;
    unsigned size = __rseq_size ? __rseq_size : 32;
    for (int i = 0; i < 2; i++)
        results[i] = syscall(SYS_rseq, area, size, 1 - i, RSEQ_SIG) == 0 ? 0 : errno;
}
static void set_rseq(void) { try_rseq(rseq_results); }
static void has_rseq(void) {
    int now[2];
    try_rseq(now);
    EXPECT_EQ(now[0], rseq_results[0]);
    EXPECT_EQ(now[1], rseq_results[1]);
}

static const struct kind kinds[] = {
    {"general registers", set_integers, has_integers},
    {"flags", set_flags, has_flags},
    {"base of fs", set_fs, has_fs},
    {"vector registers", set_vectors, has_vectors},
    {"wide vector registers and masks", set_wide, has_wide},
    {"MXCSR", set_floats, has_mxcsr},
    {"x87", NULL, has_x87},
    {"rounding and exceptions", set_rounding, has_rounding},
    {"base of gs", set_gs, has_gs},
    {"thread-local data", set_local, has_local},
    {"no time stamp counter", set_no_counter, has_no_counter},
    {"no CPUID", set_no_cpuid, has_no_cpuid},
    {"permission for tiles", set_tiles, has_tiles},
    {"rseq", set_rseq, has_rseq},
};

int main(void) { return state_run(kinds, sizeof kinds / sizeof *kinds); }
