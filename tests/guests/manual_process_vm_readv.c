// process_vm_readv(2), process_vm_writev(2): vectors, parts that fail, whose memory, errors.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#include "manual.h"

static char* pages;   // four private ones
static char* shared;  // one

static pid_t target(void) {
    int ready[2], held[2];  // it ends when the caller has
    CHECK_EQ(pipe(ready), 0);
    CHECK_EQ(pipe(held), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        usleep(40000);
        for (int i = 0; i < 4; i++) memset(pages + i * 4096, 'A' + i, 4096);
        strcpy(shared, "shared by both");
        CHECK_EQ(write(ready[1], "x", 1), 1);
        close(held[1]);
        char nothing;
        _exit(read(held[0], &nothing, 1) != 0);
    }
    close(held[0]);
    char byte;
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}
static void end(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void errors(void) {
    char here[16];
    struct iovec mine = {here, 16}, theirs = {pages, 16}, bad = {manual_bad_pointer(), 16};
    TRY(process_vm_readv(getpid(), &mine, 1, &theirs, 1, 1));
    TRY(process_vm_readv(-5, &mine, 1, &theirs, 1, 0));
    TRY(process_vm_readv(1 << 29, &mine, 1, &theirs, 1, 0));
    TRY(process_vm_readv(getpid(), &mine, 1025, &theirs, 1, 0));
    TRY(process_vm_readv(getpid(), &mine, 1, &theirs, 1025, 0));
    TRY(process_vm_readv(getpid(), manual_bad_pointer(), 1, &theirs, 1, 0));
    TRY(process_vm_readv(getpid(), &mine, 1, manual_bad_pointer(), 1, 0));
    TRY(process_vm_readv(getpid(), &bad, 1, &theirs, 1, 0));
    TRY(process_vm_readv(getpid(), &mine, 1, &bad, 1, 0));
    TRY(process_vm_writev(getpid(), &mine, 1, &bad, 1, 0));
    TRY(process_vm_readv(getpid(), &mine, 0, &theirs, 1, 0));
    TRY(process_vm_readv(getpid(), &mine, 1, &theirs, 0, 0));
    TRY(process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0));
    struct iovec huge = {pages, (size_t)1 << 63};
    TRY(process_vm_readv(getpid(), &huge, 1, &theirs, 1, 0));
    TRY(process_vm_readv(getpid(), &mine, 1, &huge, 1, 0));
    pid_t zombie = fork();
    if (zombie == 0) _exit(0);
    siginfo_t info;
    CHECK_EQ(waitid(P_PID, (id_t)zombie, &info, WEXITED | WNOWAIT), 0);
    TRY(process_vm_readv(zombie, &mine, 1, &theirs, 1, 0));
    waitpid(zombie, NULL, 0);
    TRY(process_vm_readv(zombie, &mine, 1, &theirs, 1, 0));
}

static void reads(void) {
    pid_t child = target();
    char here[8192 + 100] = "", small[3] = "";
    struct iovec mine[2] = {{small, 3}, {here, sizeof here}};
    struct iovec theirs[3] = {{pages + 4094, 4}, {pages + 8192, 2}, {shared, 15}};
    TRY(process_vm_readv(child, mine, 2, theirs, 3, 0));
    SAY("%.3s %.3s %s", small, here, here + 3);
    SAY("own memory %d", pages[0]);
    struct iovec whole = {here, sizeof here}, across = {pages, 8192 + 100};
    TRY(process_vm_readv(child, &whole, 1, &across, 1, 0));
    SAY("%c%c%c", here[0], here[4096], here[8192]);
    struct iovec over_end = {pages + 4 * 4096 - 50, 100};
    TRY(process_vm_readv(child, &whole, 1, &over_end, 1, 0));
    struct iovec then_bad[2] = {{pages, 10}, {manual_bad_pointer(), 10}};
    TRY(process_vm_readv(child, &whole, 1, then_bad, 2, 0));
    end(child);
}

static void writes(void) {
    pid_t child = target();
    char text[] = "written from outside";
    struct iovec mine = {text, sizeof text}, theirs = {pages + 100, sizeof text};
    TRY(process_vm_writev(child, &mine, 1, &theirs, 1, 0));
    char back[32] = "";
    struct iovec into = {back, sizeof text};
    TRY(process_vm_readv(child, &into, 1, &theirs, 1, 0));
    SAY("%s, own %d", back, pages[100]);
    theirs.iov_base = shared;
    TRY(process_vm_writev(child, &mine, 1, &theirs, 1, 0));
    SAY("%s", shared);
    struct iovec code = {(void*)(uintptr_t)&writes, 4};
    TRY(process_vm_writev(child, &mine, 1, &code, 1, 0));
    TRY(process_vm_readv(child, &into, 1, &code, 1, 0));
    struct iovec end_of_it = {pages + 4 * 4096 - 5, sizeof text};
    TRY(process_vm_writev(child, &mine, 1, &end_of_it, 1, 0));
    end(child);
}

static void permission(void) {
    pid_t child = target();
    char here[4];
    struct iovec mine = {here, 4}, theirs = {pages, 4};
    manual_become_nobody();
    TRY(process_vm_readv(child, &mine, 1, &theirs, 1, 0));
    TRY(process_vm_writev(child, &mine, 1, &theirs, 1, 0));
    TRY(prctl(PR_SET_DUMPABLE, 1));
    pid_t own = fork();
    if (own == 0) {
        alarm(20);
        for (;;) pause();
    }
    TRY(process_vm_readv(own, &mine, 1, &theirs, 1, 0));
    end(own);
}

int main(void) {
    manual_begin();
    pages = mmap(NULL, 5 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK_EQ(mprotect(pages + 4 * 4096, 4096, PROT_NONE), 0);
    manual_in_child("errors", errors);
    manual_in_child("reads", reads);
    manual_in_child("writes", writes);
    if (getuid() == 0) manual_in_child("permission", permission);
    return guest_passed();
}
