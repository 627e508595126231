// Children that job control has stopped are still stopped, and one that went on meanwhile tells so.
#include "state.h"

static pid_t stopped, told, continued;

static pid_t begin_stopped(int status) {
    siginfo_t info = {0};
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        _exit(status);
    }
    CHECK_EQ(waitid(P_PID, (id_t)child, &info, WSTOPPED | WNOWAIT), 0);
    return child;
}
static void ends_with(pid_t child, int expected) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == expected);
}

static void set_stopped(void) { stopped = begin_stopped(24); }
static void is_stopped(void) {
    int status = 0;
    EXPECT_EQ(waitpid(stopped, &status, WUNTRACED | WNOHANG), stopped);
    EXPECT(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    EXPECT_EQ(waitpid(stopped, &status, WUNTRACED | WNOHANG), 0);
    EXPECT_EQ(kill(stopped, SIGCONT), 0);
    ends_with(stopped, 24);
}
static void set_told(void) {
    int status = 0;
    told = begin_stopped(25);
    EXPECT_EQ(waitpid(told, &status, WUNTRACED), told);
}
static void was_told(void) {
    int status = 0;
    EXPECT_EQ(waitpid(told, &status, WUNTRACED | WNOHANG), 0);  // not again
    EXPECT_EQ(kill(told, SIGCONT), 0);
    ends_with(told, 25);
}
static void set_continued(void) {
    siginfo_t info = {0};
    if ((continued = fork()) == 0) pause();
    EXPECT_EQ(kill(continued, SIGSTOP), 0);
    EXPECT_EQ(waitid(P_PID, (id_t)continued, &info, WSTOPPED), 0);
    EXPECT_EQ(kill(continued, SIGCONT), 0);
}
static void is_continued(void) {
    int status = 0;
    EXPECT_EQ(waitpid(continued, &status, WCONTINUED | WUNTRACED | WNOHANG), continued);
    EXPECT(WIFCONTINUED(status));
    EXPECT_EQ(kill(continued, SIGKILL), 0);
    EXPECT_EQ(waitpid(continued, &status, 0), continued);
    EXPECT_EQ(status, SIGKILL);
}

static const struct kind kinds[] = {
    {"stopped child", set_stopped, is_stopped},
    {"stopped child, which was told", set_told, was_told},
    {"child that goes on", set_continued, is_continued},
};

int main(void) { return state_run(kinds, sizeof kinds / sizeof *kinds); }
