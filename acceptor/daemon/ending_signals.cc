#include "acceptor/daemon/ending_signals.h"

#include <sys/signalfd.h>

#include <csignal>

namespace gpr {

Result<Fd> catch_ending_signals() {
    sigset_t caught;
    sigemptyset(&caught);
    for (const int number : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&caught, number);
    // The end of a terminal ends us too, except under nohup. A blocked signal is never ignored.
    struct sigaction hangup {};
    sigaction(SIGHUP, nullptr, &hangup);
    if (hangup.sa_handler != SIG_IGN) sigaddset(&caught, SIGHUP);
    GPR_CHECK(from_libc(sigprocmask(SIG_BLOCK, &caught, nullptr), "block signals"));
    signal(SIGPIPE, SIG_IGN);
    Fd signals(signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals) return fail(errno, "make a signalfd");
    return signals;
}

}  // namespace gpr
