#include "monitor/launch/greeting.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <csignal>
#include <utility>

namespace gpr {

namespace {

// An acceptor inside this command would end with the thread that started it.
Result<LocalAcceptor> start_none(const LogOptions&) {
    return fail("a session cannot move to an acceptor inside of it ('local')");
}

}  // namespace

WithoutSignals::WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
}

WithoutSignals::~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

Greeting::Greeting(Loop& loop, ExecOptions options, NodeId node, std::string session, pid_t program)
    : options_(std::move(options)),
      node_(node),
      session_(std::move(session)),
      program_(program),
      over_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      watch_(loop.watch(over_.get(), POLLIN, [this](uint32_t) { done_.set(true); })),
      done_(loop) {
    const WithoutSignals beginning;
    thread_ = std::thread([this] {
        const HelloSource hello = [this] {
            Hello asked = hello_of(options_, node_, session_, program_);
            asked.watches_futexes = false;  // loaded at the first start there
            return asked;
        };
        outcome_ = greet_acceptor_of(options_, node_, {}, start_none, hello);
        eventfd_write(over_.get(), 1);
    });
}

Greeting::~Greeting() {
    if (thread_.joinable()) thread_.join();
}

Task<Result<EstablishedAcceptor>> Greeting::outcome() {
    co_await done_;
    watch_.reset();
    thread_.join();
    co_return std::move(*outcome_);
}

}  // namespace gpr
