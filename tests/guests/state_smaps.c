// What smaps tells of a mapping stays: locked, what children and core files get of it, huge pages,
// in which order it is read, and its name.
#include <sys/mman.h>
#include <sys/prctl.h>

#include "state.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif
enum { PAGE = 4096, SIZE = 16 * PAGE, ADVISED = 8 };

// Its own mapping, whatever is beside it: with a page on each side that nobody may touch.
static char* map(size_t size) {
    char* memory = mmap(NULL, size + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + PAGE, size, PROT_READ | PROT_WRITE) != 0)
        return NULL;
    guest_fill(memory + PAGE, size, 1);
    return memory + PAGE;
}

// Whether smaps has these two letters among the flags of an address, or this [name].
static int in_smaps(const char* address, const char* what) {
    unsigned long begin = 0, end = 0, wanted = (unsigned long)address;
    char line[600];
    int found = -1;
    FILE* file = fopen("/proc/self/smaps", "re");
    while (file && fgets(line, sizeof line, file)) {
        if (line[0] < 'A' || line[0] > 'Z') sscanf(line, "%lx-%lx", &begin, &end);
        if (wanted < begin || wanted >= end) continue;
        if (what[0] == '[' && strstr(line, what)) found = 1;
        if (what[0] != '[' && strncmp(line, "VmFlags:", 8) == 0) found = strstr(line, what) != NULL;
    }
    if (file) fclose(file);
    return found;
}

static const struct {
    int advice;
    char letters[4];
} advised[ADVISED] = {
    {MADV_DONTFORK, " dc"}, {MADV_WIPEONFORK, " wf"}, {MADV_DONTDUMP, " dd"},
    {MADV_HUGEPAGE, " hg"}, {MADV_NOHUGEPAGE, " nh"}, {MADV_SEQUENTIAL, " sr"},
    {MADV_RANDOM, " rr"},   {MADV_MERGEABLE, " mg"},
};
// The first page of each is not advised.
static char* memory[ADVISED];
static void set_advice(int which) {
    EXPECT((memory[which] = map(SIZE)) != NULL);
    POSSIBLE(madvise(memory[which] + PAGE, SIZE - PAGE, advised[which].advice) == 0);
}
static void has_advice(int which) {
    EXPECT_EQ(in_smaps(memory[which], advised[which].letters), 0);
    EXPECT_EQ(in_smaps(memory[which] + PAGE, advised[which].letters), 1);
    EXPECT(guest_is_filled(memory[which], SIZE, 1));
}
#define ADVICE(n)                                \
    static void set_##n(void) { set_advice(n); } \
    static void has_##n(void) { has_advice(n); }
ADVICE(0)
ADVICE(1)
ADVICE(2)
ADVICE(3)
ADVICE(4)
ADVICE(5)
ADVICE(6)
ADVICE(7)

static char *locked, *on_fault, *at_once, *no_reserve, *named;
static void set_locked(void) {
    EXPECT((locked = map(SIZE)) != NULL);
    POSSIBLE(mlock(locked + PAGE, 4 * PAGE) == 0);
}
static void is_locked(void) {
    EXPECT_EQ(in_smaps(locked, " lo"), 0);
    EXPECT_EQ(in_smaps(locked + PAGE, " lo"), 1);
    EXPECT_EQ(in_smaps(locked + 5 * PAGE, " lo"), 0);
    EXPECT_EQ(munlock(locked, SIZE), 0);
    EXPECT_EQ(in_smaps(locked + PAGE, " lo"), 0);
}
static void set_on_fault(void) {
    EXPECT((on_fault = map(SIZE)) != NULL);
    POSSIBLE(mlock2(on_fault, SIZE, MLOCK_ONFAULT) == 0);
}
static void is_on_fault(void) { EXPECT_EQ(in_smaps(on_fault, " lo"), 1); }
static char* map_with(int flags) {
    const int access = PROT_READ | PROT_WRITE;
    char* mapped = mmap(NULL, SIZE, access, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}
static void set_at_once(void) { POSSIBLE((at_once = map_with(MAP_LOCKED)) != NULL); }
static void is_at_once(void) { EXPECT_EQ(in_smaps(at_once, " lo"), 1); }
static void set_no_reserve(void) { POSSIBLE((no_reserve = map_with(MAP_NORESERVE)) != NULL); }
static void has_no_reserve(void) { EXPECT_EQ(in_smaps(no_reserve, " nr"), 1); }
static void set_name(void) {
    EXPECT((named = map(SIZE)) != NULL);
    POSSIBLE(prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, named, SIZE, "a name") == 0);
}
static void has_name(void) { EXPECT_EQ(in_smaps(named, "[anon:a name]"), 1); }

static const struct kind kinds[] = {
    {"MADV_DONTFORK", set_0, has_0},         {"MADV_WIPEONFORK", set_1, has_1},
    {"MADV_DONTDUMP", set_2, has_2},         {"MADV_HUGEPAGE", set_3, has_3},
    {"MADV_NOHUGEPAGE", set_4, has_4},       {"MADV_SEQUENTIAL", set_5, has_5},
    {"MADV_RANDOM", set_6, has_6},           {"MADV_MERGEABLE", set_7, has_7},
    {"mlock", set_locked, is_locked},        {"mlock on fault", set_on_fault, is_on_fault},
    {"MAP_LOCKED", set_at_once, is_at_once}, {"MAP_NORESERVE", set_no_reserve, has_no_reserve},
    {"name of memory", set_name, has_name},
};

int main(void) { return state_run(kinds, sizeof kinds / sizeof *kinds); }
