// A function of a library changes code of the executable, and the executable that of the library,
// again and again: the next call runs what was written.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "guest.h"
#include "libgprguest.h"

enum { PAGE = 4096, ROUNDS = 8 };

// Each on pages of its own: what is replaced takes nothing else along.
#define PATCHED(name, value)                                                           \
    long name(void);                                                                   \
    __asm__(".text\n.balign 4096\n.globl " #name "\n.type " #name ",@function\n" #name \
            ":\n mov $" #value ", %eax\n ret\n .balign 4096\n")

PATCHED(protected_code, 1);
PATCHED(keyed_code, 2);
PATCHED(replaced_code, 3);
PATCHED(remapped_code, 4);
PATCHED(read_code, 5);
PATCHED(file_code, 7);
PATCHED(seen_code, 8);

typedef long (*function)(void);

static long in_library(long number, long a, long b, long c, long d, long e, long f) {
    long arguments[6] = {a, b, c, d, e, f};
    return remote_syscall(number, arguments);
}

static void code_for(unsigned char* bytes, int value) {
    memset(bytes, 0xcc, 16);
    bytes[0] = 0xb8;
    memcpy(bytes + 1, &value, 4);
    bytes[5] = 0xc3;
}

// By the library's own instructions.
static void write_there(function at, int value) {
    unsigned char bytes[16];
    code_for(bytes, value);
    for (int i = 0; i < 6; i++) remote_fill((void*)((uintptr_t)at + (uintptr_t)i), 1, bytes[i]);
}

static void let_it_hide(void) { usleep(2000); }

static void protect(long number, function at, int prot) {
    CHECK_EQ(in_library(number, (long)(uintptr_t)at, PAGE, prot, -1, 0, 0), 0);
}

static void patch_protected(long number, function at) {
    for (int i = 0; i < ROUNDS; i++) {
        protect(number, at, PROT_READ | PROT_WRITE | PROT_EXEC);
        write_there(at, 1000 + i);
        let_it_hide();
        CHECK_EQ(remote_sum((const uint64_t*)(uintptr_t)at, 1), *(uint64_t*)(uintptr_t)at);
        protect(number, at, PROT_READ | PROT_EXEC);
        CHECK_EQ(at(), 1000 + i);
    }
}

static void patch_seen(function at) {
    CHECK_EQ(at(), 8);
    CHECK_EQ(remote_sum((const uint64_t*)(uintptr_t)at, 1), *(uint64_t*)(uintptr_t)at);
    let_it_hide();
    patch_protected(SYS_mprotect, at);
}

static void patch_replaced(function at, int unmap_first) {
    for (int i = 0; i < ROUNDS; i++) {
        if (unmap_first) CHECK_EQ(in_library(SYS_munmap, (long)(uintptr_t)at, PAGE, 0, 0, 0, 0), 0);
        CHECK_EQ(in_library(SYS_mmap, (long)(uintptr_t)at, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                 (uintptr_t)at);
        write_there(at, 2000 + i);
        let_it_hide();
        CHECK_EQ(at(), 2000 + i);
    }
}

// The kernel writes it.
static void patch_by_calls(function at) {
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        unsigned char bytes[16];
        code_for(bytes, 3000 + i);
        CHECK_EQ(write(pipes[1], bytes, sizeof bytes), sizeof bytes);
        CHECK_EQ(in_library(SYS_read, pipes[0], (long)(uintptr_t)at, 16, 0, 0, 0), -EFAULT);
        protect(SYS_mprotect, at, PROT_READ | PROT_WRITE | PROT_EXEC);
        CHECK_EQ(in_library(SYS_read, pipes[0], (long)(uintptr_t)at, 16, 0, 0, 0), 16);
        let_it_hide();
        CHECK_EQ(at(), 3000 + i);
        code_for(bytes, 4000 + i);
        struct iovec from = {bytes, sizeof bytes}, to = {(void*)(uintptr_t)at, sizeof bytes};
        CHECK_EQ(in_library(SYS_process_vm_writev, getpid(), (long)(uintptr_t)&from, 1,
                            (long)(uintptr_t)&to, 1, 0),
                 16);
        let_it_hide();
        CHECK_EQ(at(), 4000 + i);
        protect(SYS_mprotect, at, PROT_READ | PROT_EXEC);
        CHECK_EQ(at(), 4000 + i);
    }
    close(pipes[0]);
    close(pipes[1]);
}

// A debugger's way, which needs no protection changed.
static void patch_by_file(function at) {
    int memory = open("/proc/self/mem", O_RDWR);
    CHECK(memory >= 0);
    for (int i = 0; i < ROUNDS; i++) {
        unsigned char bytes[16], seen[16];
        code_for(bytes, 5000 + i);
        CHECK_EQ(
            in_library(SYS_pwrite64, memory, (long)(uintptr_t)bytes, 16, (long)(uintptr_t)at, 0, 0),
            16);
        let_it_hide();
        CHECK_EQ(at(), 5000 + i);
        CHECK_EQ(remote_sum((const uint64_t*)(uintptr_t)at, 1), *(uint64_t*)(uintptr_t)at);
        CHECK_EQ(pread(memory, seen, 16, (off_t)(uintptr_t)at), 16);
        CHECK(memcmp(seen, bytes, 16) == 0);
    }
    close(memory);
}

// The other way round: the executable changes what runs at the acceptor.
static void patch_library(void) {
    uintptr_t at = (uintptr_t)remote_add;
    void* page = (void*)(at & ~(uintptr_t)(PAGE - 1));
    size_t size = (at & (PAGE - 1)) > PAGE - 16 ? 2 * PAGE : PAGE;
    unsigned char old[16], bytes[16];
    CHECK_EQ(remote_add(1, 2), 3);
    memcpy(old, (const void*)at, sizeof old);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(mprotect(page, size, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
        CHECK(memcmp((const void*)at, old, 6) == 0);  // read before it is written
        code_for(bytes, 6000 + i);
        memcpy((void*)at, bytes, 6);
        let_it_hide();
        CHECK_EQ(mprotect(page, size, PROT_READ | PROT_EXEC), 0);
        CHECK_EQ(remote_add(1, 2), 6000 + i);
        CHECK(memcmp((const void*)at, bytes, 6) == 0);
        CHECK_EQ(mprotect(page, size, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
        memcpy((void*)at, old, sizeof old);
        CHECK_EQ(remote_add(1, 2), 3);
    }
}

int main(void) {
    patch_protected(SYS_mprotect, protected_code);
    patch_protected(SYS_pkey_mprotect, keyed_code);
    patch_seen(seen_code);
    patch_replaced(replaced_code, 0);
    patch_replaced(remapped_code, 1);
    patch_by_calls(read_code);
    patch_by_file(file_code);
    patch_library();
    return guest_passed();
}
