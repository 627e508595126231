// A tracee's memory is read and written through /proc, and read by process_vm_readv.
#include <fcntl.h>

#include "ptrace.h"

static volatile long word = 5;

static void changes(void) {
    word = 6;
    __asm__ volatile("int3");
    _exit((int)word);
}

int main(void) {
    pid_t child = traced_child(changes);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGTRAP, 0));
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", child);
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0);
    long value = 0;
    CHECK_EQ(pread(fd, &value, sizeof value, (off_t)(uintptr_t)&word), sizeof value);
    CHECK_EQ(value, 6);
    value = 7;
    CHECK_EQ(pwrite(fd, &value, sizeof value, (off_t)(uintptr_t)&word), sizeof value);
    value = 0;
    struct iovec here = {&value, sizeof value}, there = {(void*)&word, sizeof word};
    CHECK_EQ(process_vm_readv(child, &here, 1, &there, 1, 0), sizeof value);
    CHECK_EQ(value, 7);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 7 << 8);
    return guest_passed();
}
