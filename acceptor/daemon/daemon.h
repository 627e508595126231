// `gpr acceptor`: listens, and forks a worker for each connection.
#pragma once

#include <chrono>

#include "acceptor/daemon/acceptor_options.h"
#include "acceptor/daemon/admission.h"
#include "acceptor/daemon/log_allowance.h"
#include "acceptor/daemon/session_order.h"

namespace gpr {

struct DaemonLimits {
    AdmissionLimits admission;                   // `sessions` is taken from the options
    LogAllowanceLimits stranger_log;             // of lines that strangers cause
    std::chrono::milliseconds stop_grace{5000};  // between SIGTERM and SIGKILL for workers
};

// Runs until SIGTERM or SIGINT, then ends all sessions. Returns the command's exit status: 0, or
// 125 with a message on stderr if it could not start.
int run_acceptor_daemon(const AcceptorOptions& options);
// With other workers, of which none waits for its session.
int run_acceptor_daemon(const AcceptorOptions& options, const SessionStart& start,
                        const DaemonLimits& limits);

}  // namespace gpr
