// membarrier(2): a process that has registered may use it, so may its children, whenever they are
// born, and theirs; a new image has to register again.
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "manual.h"

enum { GET_REGISTRATIONS = 1 << 9 };  // MEMBARRIER_CMD_GET_REGISTRATIONS, Linux 6.3

static long barrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

static void look(const char* who) {
    int commands[] = {MEMBARRIER_CMD_PRIVATE_EXPEDITED, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE,
                      MEMBARRIER_CMD_GLOBAL_EXPEDITED, MEMBARRIER_CMD_GLOBAL};
    const char* names[] = {"private", "core", "global expedited", "global"};
    for (int i = 0; i < 4; i++) {
        int works = 0, error = 0;
        for (int k = 0; k < 20; k++) {
            CHECK(getppid() > 0);
            errno = 0;
            if (barrier(commands[i]) == 0) works++;
            if (errno) error = errno;
        }
        printf("%s: %s %d/20 %s\n", who, names[i], works, error ? strerrorname_np(error) : "");
    }
    printf("%s: registered for %#lx\n", who, barrier(GET_REGISTRATIONS));
    fflush(stdout);
}

static void wait_for(pid_t child) {
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    printf("ends with %#x\n", status);
    fflush(stdout);
}

static void child_of(const char* name, int image, int young_registers) {
    printf("-- %s\n", name);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (young_registers) CHECK_EQ(barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED), 0);
        look("young");
        if (image == 1) execl("/proc/self/exe", "membarrier_inherited", "image", NULL);
        usleep(60000);
        look("old");
        if (image == 2) execl("/proc/self/exe", "membarrier_inherited", "image", NULL);
        pid_t next = fork();
        if (next == 0) {
            usleep(60000);
            look("its child");
            _exit(0);
        }
        wait_for(next);
        _exit(0);
    }
    wait_for(child);
}

int main(int argc, char** argv) {
    manual_begin();
    (void)argv;
    if (argc > 1) {
        look("image");
        return 0;
    }
    child_of("nobody has registered", 0, 0);
    child_of("the child registers", 0, 1);
    child_of("the child registers, and executes", 1, 1);
    look("first");
    CHECK_EQ(barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED), 0);
    CHECK_EQ(barrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED), 0);
    look("registered");
    child_of("the parent has", 0, 0);
    child_of("the parent has, the child executes", 1, 0);
    child_of("the parent has, the old child executes", 2, 0);
    size_t size = 24 << 20;  // of a child with much memory, which has its own way
    char* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 7, size);
    child_of("with much memory", 0, 0);
    CHECK_EQ(barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE), 0);
    look("registered more");
    return guest_passed();
}
