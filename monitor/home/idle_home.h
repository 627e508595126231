// Whether home's monitor may poll for events a little: see running_threads.h.
#pragma once

#include "monitor/node/running_threads.h"

namespace gpr::home {

struct Home;

class IdleHome {
public:
    explicit IdleHome(const Home& home) : home_(home) {}
    // Whether no thread uses a processor of this host, as far as one can tell.
    [[nodiscard]] bool nothing_runs();

private:
    const Home& home_;
    RunningThreads running_threads_;
};

}  // namespace gpr::home
