// Code made at run time: W^X by mprotect, and two views of one memfd; rewritten many times.
#include <sys/mman.h>

#include "guest.h"

typedef int (*Function)(void);

static void emit(unsigned char* at, int value) {
    at[0] = 0xb8;  // mov eax, imm32
    memcpy(at + 1, &value, 4);
    at[5] = 0xc3;  // ret
}

int main(void) {
    unsigned char* code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(mprotect(code, 4096, PROT_READ | PROT_WRITE), 0);
        emit(code + i * 16, i * 7);
        CHECK_EQ(mprotect(code, 4096, PROT_READ | PROT_EXEC), 0);
        CHECK_EQ(((Function)(void*)(code + i * 16))(), i * 7);
    }
    int fd = memfd_create("jit", 0);
    CHECK_EQ(ftruncate(fd, 4096), 0);
    unsigned char* writable = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    unsigned char* runnable = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    CHECK(writable != MAP_FAILED && runnable != MAP_FAILED);
    for (int i = 0; i < 1000; i++) {
        emit(writable, i);
        CHECK_EQ(((Function)(void*)runnable)(), i);
    }
    return guest_passed();
}
