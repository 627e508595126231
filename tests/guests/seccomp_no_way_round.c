// Code of the program's own in the range of addresses that gpr keeps for itself cannot make a call
// that the program's filter refuses, whether it was mapped before the filter or after.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

static const unsigned char caller[] = {0xb8, SYS_getppid, 0, 0, 0, 0x0f, 0x05, 0xc3};

typedef long (*function)(void);

static function put(uintptr_t address, int flags) {
    void* at = mmap((void*)address, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                    MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (at == MAP_FAILED) return NULL;
    memcpy(at, caller, sizeof caller);
    return (function)at;
}

static void* put_by_move(uintptr_t address) {
    function here = put(0x200000000000, MAP_FIXED);
    void* at = mremap((void*)here, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, (void*)address);
    return at == MAP_FAILED ? NULL : at;
}

static void try_call(function there) {
    if (there) CHECK(there() < 0);
}

int main(void) {
    static struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 71),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    for (int early = 0; early < 2; early++) {
        const pid_t child = fork();
        if (child == 0) {
            function before = early ? put(0x550000200000, MAP_FIXED) : NULL;
            CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
            CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), 0);
            CHECK_ERRNO(syscall(SYS_getppid), 71);
            try_call(before);
            try_call(put(0x550000300000, MAP_FIXED));
            try_call(put(0x550000400000, 0));
            try_call((function)put_by_move(0x550000500000));
            // From below into the range.
            char* across = mmap((void*)0x54fffffff000, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
            if (across != MAP_FAILED) {
                memcpy(across + 4096, caller, sizeof caller);
                try_call((function)(across + 4096));
            }
            _exit(7);
        }
        int status = -1;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    return guest_passed();
}
