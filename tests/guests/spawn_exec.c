// vfork, posix_spawn with file actions, system, popen; a failing exec says why.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include "guest.h"

extern char** environ;

int main(void) {
    int status;
    volatile int shared = 0;
    pid_t pid = vfork();
    if (pid == 0) {
        shared = 5;
        execl("/bin/true", "true", NULL);
        _exit(1);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    CHECK_EQ(shared, 5);
    pid = vfork();
    if (pid == 0) {
        execl("/absent/program", "program", NULL);
        _exit(errno == ENOENT ? 8 : 9);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(WEXITSTATUS(status), 8);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "out", O_WRONLY | O_CREAT, 0600);
    char* arguments[] = {"sh", "-c", "echo spawned $VALUE; exit 3", NULL};
    char* environment[] = {"VALUE=42", "PATH=/usr/bin:/bin", NULL};
    CHECK_EQ(posix_spawnp(&pid, "sh", &actions, NULL, arguments, environment), 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(WEXITSTATUS(status), 3);
    CHECK_EQ(posix_spawn(&pid, "/absent", NULL, NULL, arguments, environ), ENOENT);
    char line[100];
    FILE* file = fopen("out", "r");
    CHECK(file && fgets(line, sizeof line, file) && strcmp(line, "spawned 42\n") == 0);
    status = system("exit 6");
    CHECK_EQ(WEXITSTATUS(status), 6);
    file = popen("tr a-z A-Z > out2", "w");
    fputs("through a pipe\n", file);
    CHECK_EQ(pclose(file), 0);
    file = popen("cat out2", "r");
    CHECK(fgets(line, sizeof line, file) && strcmp(line, "THROUGH A PIPE\n") == 0);
    CHECK_EQ(pclose(file), 0);
    return guest_passed();
}
