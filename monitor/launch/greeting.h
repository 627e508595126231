// Connects to an acceptor while a session runs, or while one is prepared: in a thread, because a
// handshake takes as long as the network and the acceptor want.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/task.h"
#include "monitor/launch/connections.h"
#include "transport/loop.h"

namespace gpr {

// Threads that begin while this exists get no signals: these are for the session's own.
class WithoutSignals {
public:
    WithoutSignals();
    WithoutSignals(const WithoutSignals&) = delete;
    WithoutSignals& operator=(const WithoutSignals&) = delete;
    ~WithoutSignals();

private:
    sigset_t before_;
};

class Greeting {
public:
    // Begins to greet the acceptor that is this node in the options. The destructor waits until it
    // is over.
    Greeting(Loop& loop, ExecOptions options, NodeId node, std::string session, pid_t program);
    ~Greeting();
    Greeting(const Greeting&) = delete;
    Greeting& operator=(const Greeting&) = delete;

    // To be called once.
    Task<Result<EstablishedAcceptor>> outcome();

private:
    ExecOptions options_;
    NodeId node_;
    std::string session_;
    pid_t program_;
    Fd over_;  // an eventfd
    Watch watch_;
    OneShot<bool> done_;
    std::optional<Result<EstablishedAcceptor>> outcome_;  // the thread's, until it is over
    std::thread thread_;
};

}  // namespace gpr
