// set_mempolicy(2): the policy is the thread's; new threads and children have it, and a new image
// keeps it.
#include <linux/capability.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

enum { MOST = 1024 };

static unsigned long nodes[MOST / 64 + 1];

static long set_policy(int mode, const unsigned long* set, unsigned long most) {
    return syscall(SYS_set_mempolicy, mode, set, most);
}

static void has_policy(int mode, unsigned long first_word) {
    int seen = -1;
    unsigned long set[MOST / 64 + 1] = {0};
    CHECK_EQ(syscall(SYS_get_mempolicy, &seen, set, MOST, NULL, 0UL), 0);
    CHECK_EQ(seen, mode);
    CHECK_EQ(set[0], first_word);
}

static void* is_inherited(void* nothing) {
    (void)nothing;
    has_policy(MPOL_INTERLEAVE, 1);
    CHECK_EQ(set_policy(MPOL_PREFERRED, nodes, MOST), 0);
    has_policy(MPOL_PREFERRED, 1);
    return NULL;
}

static void wait_for(pid_t child) {
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static void in_thread(void) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, is_inherited, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void in_child(const char* self, long age_ms) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct timespec age = {0, age_ms * 1000000};
        nanosleep(&age, NULL);
        has_policy(MPOL_INTERLEAVE, 1);
        in_thread();
        pid_t grandchild = fork();
        CHECK(grandchild >= 0);
        if (grandchild == 0) {
            has_policy(MPOL_INTERLEAVE, 1);
            execl(self, self, "interleave", (char*)NULL);
            _exit(1);
        }
        wait_for(grandchild);
        CHECK_EQ(set_policy(MPOL_BIND, nodes, MOST), 0);
        execl(self, self, "bind", (char*)NULL);
        _exit(1);
    }
    wait_for(child);
    has_policy(MPOL_INTERLEAVE, 1);
}

// As mbind(2) and set_mempolicy(2) name them.
static void errors(void) {
    CHECK_ERRNO(set_policy(77, nodes, MOST), EINVAL);
    CHECK_ERRNO(set_policy(MPOL_BIND, NULL, 0), EINVAL);
    CHECK_ERRNO(set_policy(MPOL_DEFAULT, nodes, MOST), EINVAL);
    CHECK_ERRNO(set_policy(MPOL_BIND, nodes, 1UL << 40), EINVAL);
    CHECK_ERRNO(set_policy(MPOL_BIND | MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES, nodes, MOST),
                EINVAL);
    CHECK_ERRNO(set_policy(MPOL_BIND, (const unsigned long*)8, MOST), EFAULT);
    unsigned long none[MOST / 64 + 1] = {0};
    CHECK_ERRNO(set_policy(MPOL_BIND, none, MOST), EINVAL);
    none[MOST / 64 - 1] = 1UL << 62;
    CHECK_ERRNO(set_policy(MPOL_BIND, none, MOST), EINVAL);
    CHECK_ERRNO(set_policy(MPOL_BIND, nodes, 1), EINVAL);
}

static long bind_memory(void* memory, unsigned flags) {
    return syscall(SYS_mbind, memory, 1UL << 16, MPOL_BIND, nodes, (unsigned long)MOST, flags);
}

// Pages that others have as well may be moved by whoever has CAP_SYS_NICE.
static void moves_all(char* memory) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct caps[2];
    CHECK_EQ(syscall(SYS_capget, &header, caps), 0);
    int may = caps[0].effective >> CAP_SYS_NICE & 1;
    CHECK_EQ(bind_memory(memory, MPOL_MF_MOVE), 0);
    if (may) {
        CHECK_EQ(bind_memory(memory, MPOL_MF_MOVE_ALL), 0);
        CHECK_EQ(bind_memory(memory, MPOL_MF_MOVE_ALL | MPOL_MF_STRICT), 0);
        CHECK_ERRNO(bind_memory(memory + 1, MPOL_MF_MOVE_ALL), EINVAL);
        CHECK_ERRNO(bind_memory((char*)8192, MPOL_MF_MOVE_ALL), EFAULT);
        caps[0].effective &= ~(1U << CAP_SYS_NICE);
        CHECK_EQ(syscall(SYS_capset, &header, caps), 0);
    }
    CHECK_ERRNO(bind_memory(memory, MPOL_MF_MOVE_ALL), EPERM);
    CHECK_ERRNO(bind_memory(memory + 1, MPOL_MF_MOVE_ALL), EPERM);
    CHECK_ERRNO(bind_memory(memory, 1U << 10 | MPOL_MF_MOVE_ALL), EINVAL);
    CHECK_ERRNO(syscall(SYS_mbind, memory, 1UL << 16, MPOL_BIND, 8UL, (unsigned long)MOST,
                        MPOL_MF_MOVE_ALL),
                EFAULT);
    CHECK_EQ(bind_memory(memory, MPOL_MF_MOVE), 0);
    for (int i = 0; i < 1 << 16; i++) CHECK_EQ(memory[i], 1);
}

int main(int argc, char** argv) {
    nodes[0] = 1;
    if (argc == 2) {
        has_policy(strcmp(argv[1], "bind") == 0 ? MPOL_BIND : MPOL_INTERLEAVE, 1);
        return 0;
    }
    if (set_policy(MPOL_DEFAULT, NULL, 0) != 0) SKIP("the kernel has no NUMA policies");
    has_policy(MPOL_DEFAULT, 0);
    errors();
    has_policy(MPOL_DEFAULT, 0);
    unsigned long junk[MOST / 64 + 1] = {~0UL, ~0UL};
    CHECK_EQ(set_policy(MPOL_INTERLEAVE, junk, 2), 0);
    has_policy(MPOL_INTERLEAVE, 1);
    errors();
    in_thread();
    in_child(argv[0], 0);
    in_child(argv[0], 100);
    char* memory = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    memset(memory, 1, 1 << 16);
    has_policy(MPOL_INTERLEAVE, 1);
    CHECK_EQ(set_policy(MPOL_DEFAULT, NULL, 0), 0);
    has_policy(MPOL_DEFAULT, 0);
    moves_all(memory);
    return guest_passed();
}
