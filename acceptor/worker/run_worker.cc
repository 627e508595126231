#include "acceptor/worker/run_worker.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <utility>

#include "acceptor/worker/session.h"
#include "monitor/tracee/mailbox.h"

namespace gpr {

int run_worker(EstablishedInitiator established, Sandbox& sandbox, WorkerOptions options) {
    auto loop = Loop::create();
    if (!loop) return 1;
    auto waits = Waits::create(**loop);
    auto code = Mailbox::create_code_memfd();
    if (!waits || !code) return 1;
    const Hello peer = established.peer;
    auto link = make_link(**loop, std::move(established));
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ending, nullptr);
    Fd asked(signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
    bool drains = options.drains;
    auto watch = (*loop)->watch(asked.get(), POLLIN, [&](uint32_t) {
        signalfd_siginfo taken{};
        while (read(asked.get(), &taken, sizeof taken) > 0) {
        }
        if (!std::exchange(drains, false)) return link->close("the acceptor is being shut down");
        FrameBuilder frame;
        frame.session().setDrain();
        link->send(frame, Priority::urgent);
    });
    WorkerSession session(**loop, **waits, *link, sandbox, peer, std::move(*code),
                          std::move(options));
    (*loop)->run();
    return 0;
}

}  // namespace gpr
