// vfork(2): shared memory, own descriptors and signals, the parent waits for exec or exit.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#include "manual.h"

static volatile int shared, handled;

static void memory_is_shared(void) {
    shared = 1;
    pid_t child = vfork();
    if (child == 0) {
        shared = 2;
        _exit(9);
    }
    int status;
    SAY("%d", shared);
    CHECK_EQ(waitpid(child, &status, 0), child);
    SAY("%#x", status);
}

static void until_exec(void) {
    int told[2];
    CHECK_EQ(pipe(told), 0);
    pid_t child = vfork();
    if (child == 0) {
        shared = 3;
        dup2(told[1], 1);
        char* arguments[] = {(char*)"sh", (char*)"-c", (char*)"read x; echo after", NULL};
        dup2(open("/dev/null", O_RDONLY), 0);
        execv("/bin/sh", arguments);
        _exit(1);
    }
    SAY("goes on while it runs: %d", shared);
    close(told[1]);
    char text[16] = "";
    int status;
    waitpid(child, &status, 0);
    TRY(read(told[0], text, 15));
    SAY("%s", text);
}

static void exec_fails(void) {
    pid_t child = vfork();
    if (child == 0) {
        execl("/does/not/exist", "x", NULL);
        _exit(errno == ENOENT ? 2 : 3);
    }
    int status;
    waitpid(child, &status, 0);
    SAY("%#x", status);
}

static void descriptors_are_not(void) {
    int fd = open("/dev/null", O_RDONLY);
    pid_t child = vfork();
    if (child == 0) {
        close(fd);
        dup2(1, 55);
        chdir("/");
        _exit(0);
    }
    waitpid(child, NULL, 0);
    TRY(fcntl(fd, F_GETFD));
    TRY(fcntl(55, F_GETFD));
    char here[4096];
    SAY("%d", strcmp(getcwd(here, sizeof here), "/") != 0);
}

static void on_signal(int number) { handled++; }
static void on_other(int number) { handled += 100; }

static void signals(void) {
    signal(SIGUSR1, on_signal);
    pid_t parent = getpid(), child = vfork();
    if (child == 0) {
        signal(SIGUSR1, on_other);
        kill(parent, SIGUSR1);  // it comes when the parent goes on
        raise(SIGUSR1);
        _exit(handled == 100 ? 4 : 5);
    }
    int status;
    waitpid(child, &status, 0);
    SAY("%#x, handled %d", status, handled);
}

static void killed(void) {
    pid_t child = vfork();
    if (child == 0) {
        shared = 7;
        raise(SIGKILL);
    }
    int status;
    waitpid(child, &status, 0);
    SAY("%#x, shared %d", status, shared);
}

static volatile long counted;
static volatile int stop;
static void* counts(void* none) {
    while (!stop) counted++;
    return NULL;
}
static void other_threads_go_on(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, counts, NULL);
    while (!counted) continue;
    pid_t child = vfork();
    if (child == 0) {
        long before = counted;
        for (int i = 0; i < 200 && counted == before; i++) usleep(5000);
        _exit(counted != before);
    }
    stop = 1;
    pthread_join(thread, NULL);
    int status;
    waitpid(child, &status, 0);
    SAY("%#x", status);
}

static void nested(void) {
    pid_t child = vfork();
    if (child == 0) {
        shared = 10;
        pid_t grandchild = vfork();
        if (grandchild == 0) {
            shared++;
            _exit(1);
        }
        int status;
        waitpid(grandchild, &status, 0);
        _exit(shared == 11 && WEXITSTATUS(status) == 1 ? 6 : 7);
    }
    int status;
    waitpid(child, &status, 0);
    SAY("%#x", status);
    for (int i = 0; i < 20; i++) {
        if (vfork() == 0) {
            shared++;
            _exit(0);
        }
        wait(NULL);
    }
    SAY("%d", shared);
}

static void without_suspension(void) {
    pid_t child = syscall(SYS_clone, SIGCHLD | 0x4000 /* CLONE_VFORK */, 0, 0, 0, 0);
    if (child == 0) {
        shared = 99;  // its own copy
        usleep(30000);
        _exit(8);
    }
    int status;
    waitpid(child, &status, 0);
    SAY("%#x, not shared %d", status, shared != 99);
}

int main(void) {
    manual_begin();
    manual_in_child("memory is shared", memory_is_shared);
    manual_in_child("until exec", until_exec);
    manual_in_child("exec fails", exec_fails);
    manual_in_child("descriptors are not", descriptors_are_not);
    manual_in_child("signals", signals);
    manual_in_child("killed", killed);
    manual_in_child("other threads go on", other_threads_go_on);
    manual_in_child("nested", nested);
    manual_in_child("a copy, but suspended", without_suspension);
    return guest_passed();
}
