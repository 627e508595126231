#include "acceptor/worker_process.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace gpr {

void become_worker_process(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    setsid();
    prctl(PR_SET_NAME, "gpr-worker");
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGCHLD}) signal(number, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace gpr
