#include "monitor/launch/background.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/fd.h"
#include "monitor/rules/exec_options.h"

namespace gpr {

namespace {

int complain_of(const char* what) {
    std::fprintf(stderr, "gpr: %s: %s\n", what, std::strerror(errno));
    return exit_gpr_failed;
}

void leave_users_files(int messages) {
    const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null.get(), fd);
    if (messages >= 0) dup3(null.get(), messages, O_CLOEXEC);
}

}  // namespace

int in_background(const std::function<int(const GoesOnAlone& goes_on)>& work) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return complain_of("cannot make a pipe");
    const Fd done(ends[0]);
    Fd says_done(ends[1]);
    const pid_t child = fork();
    if (child < 0) return complain_of("cannot go on in the background");
    if (child == 0) {
        setsid();
        _exit(work([&says_done](int messages) {
            leave_users_files(messages);
            const char word = 1;
            while (write(says_done.get(), &word, 1) < 0 && errno == EINTR) {
            }
            says_done = Fd();
        }));
    }
    says_done = Fd();
    char word = 0;
    ssize_t got = -1;
    while ((got = read(done.get(), &word, 1)) < 0 && errno == EINTR) {
    }
    if (got == 1) return 0;
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : exit_gpr_failed;
}

}  // namespace gpr
