// What hardly any program has: data segments that are not empty, and the flag that only tells
// whether there is CPUID. A thread keeps both across calls that wait and across computing.
#include "state.h"

// The assembler below knows these by name.
struct timespec hold_pause = {0, 30000000};
int hold_go;
unsigned short hold_data_segments[2];
uint64_t hold_flags;

#define TURNS                                                                      \
    "1:\n mov $35, %eax\n lea hold_pause(%rip), %rdi\n xor %esi, %esi\n syscall\n" \
    "mov $3000000, %rcx\n 2: dec %rcx\n jnz 2b\n cmpl $0, hold_go(%rip)\n je 1b\n"
__asm__(
    ".text\n hold_segments:\n"
    "mov $0x2b, %eax\n mov %eax, %ds\n mov %eax, %es\n" TURNS
    "mov %ds, hold_data_segments(%rip)\n mov %es, hold_data_segments+2(%rip)\n"
    "xor %eax, %eax\n mov %eax, %ds\n mov %eax, %es\n ret\n");
__asm__(
    "hold_flag:\n"
    "pushfq\n orl $0x200000, (%rsp)\n popfq\n" TURNS
    "pushfq\n pop %rax\n mov %rax, hold_flags(%rip)\n ret\n");
extern void hold_segments(void), hold_flag(void);

static pthread_t threads[2];
static void* hold(void* function) {
    ((void (*)(void))function)();
    return NULL;
}
static void set_segments(void) { EXPECT_EQ(state_thread(&threads[0], hold, hold_segments), 0); }
static void set_flag(void) { EXPECT_EQ(state_thread(&threads[1], hold, hold_flag), 0); }
static void has_segments(void) {
    __atomic_store_n(&hold_go, 1, __ATOMIC_SEQ_CST);
    EXPECT_EQ(pthread_join(threads[0], NULL), 0);
    EXPECT(hold_data_segments[0] == 0x2b && hold_data_segments[1] == 0x2b);
}
static void has_flag(void) {
    EXPECT_EQ(pthread_join(threads[1], NULL), 0);
    EXPECT_EQ(hold_flags & 0x200000, 0x200000);
}

static const struct kind kinds[] = {
    {"data segments", set_segments, has_segments},
    {"flag of CPUID", set_flag, has_flag},
};

int main(void) { return state_run(kinds, sizeof kinds / sizeof *kinds); }
