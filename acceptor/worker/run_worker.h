// What the process that an acceptor forks for a session does, until the session is over.
#pragma once

#include "transport/handshake.h"

namespace gpr {

class Sandbox;

struct WorkerOptions {
    bool unlike_vdso = false;  // this kernel's is not used in place of the initiator's, ever
};

// The WorkerMain of a real session.
int run_worker(EstablishedInitiator established, Sandbox& sandbox,
               const WorkerOptions& options = {});

}  // namespace gpr
