// The limit of CPU time counts what a library uses: SIGXCPU each second, at last SIGKILL. A child
// has its parent's limit, and begins to count anew.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "guest.h"
#include "libgprguest.h"

enum { STEP = 1000000 };

static volatile int told, code;

static void on_limit(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    code = info->si_code;
    told++;
}

static void use_cpu_until_told(void) {
    told = 0;
    while (told == 0) CHECK_EQ(remote_count(STEP), STEP);
}

static void use_it_up(void) {
    struct rlimit limit = {2, 2}, seen;
    struct rusage usage;
    use_cpu_until_told();
    CHECK_EQ(code, SI_KERNEL);
    CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
    // The kernel limits what it counts in ticks, which may be more than what it tells.
    long user = usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec;
    CHECK(user + usage.ru_stime.tv_sec * 1000000 + usage.ru_stime.tv_usec >= 500000);
    CHECK_EQ(getrlimit(RLIMIT_CPU, &seen), 0);
    CHECK_EQ(seen.rlim_cur, 2);  // it is told again then
    CHECK_EQ(seen.rlim_max, 30);
    CHECK_EQ(prlimit(0, RLIMIT_CPU, &limit, &seen), 0);
    CHECK_EQ(seen.rlim_max, 30);
    puts("one second");
    fflush(stdout);
    for (;;) remote_count(STEP);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_limit, .sa_flags = SA_SIGINFO};
    sigaction(SIGXCPU, &action, NULL);
    struct rlimit limit = {1, 30};
    CHECK_EQ(setrlimit(RLIMIT_CPU, &limit), 0);
    pid_t child = fork();
    if (child == 0) use_it_up();
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGKILL);
    return guest_passed();
}
