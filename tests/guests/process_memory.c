// process_vm_readv and writev on a child, /proc/self/mem.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "guest.h"

int main(void) {
    char* memory = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    guest_fill(memory, 16384, 1);
    int self = open("/proc/self/mem", O_RDWR);
    char text[20];
    CHECK_EQ(pread(self, text, 10, (off_t)(uintptr_t)memory + 100), 10);
    CHECK_EQ(memcmp(text, memory + 100, 10), 0);
    CHECK_EQ(pwrite(self, "through", 7, (off_t)(uintptr_t)memory), 7);
    CHECK_EQ(memcmp(memory, "through", 7), 0);
    pid_t child = fork();
    if (child == 0) {
        memory[8192] = 'c';
        raise(SIGSTOP);
        _exit(memory[8192]);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
    struct iovec local = {text, 5}, remote = {memory + 8190, 5};
    CHECK_EQ(syscall(SYS_process_vm_readv, child, &local, 1, &remote, 1, 0), 5);
    CHECK(text[2] == 'c' && text[1] == memory[8191]);
    text[2] = 'w';
    CHECK_EQ(syscall(SYS_process_vm_writev, child, &local, 1, &remote, 1, 0), 5);
    CHECK_EQ(kill(child, SIGCONT), 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(WEXITSTATUS(status), 'w');
    return guest_passed();
}
