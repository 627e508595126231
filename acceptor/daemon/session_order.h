// What the daemon tells a worker. Workers are executed anew, so that each session has an address
// space laid out for it alone and nothing of the daemon's memory; this is all that they get.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "acceptor/daemon/acceptor_options.h"
#include "acceptor/daemon/serve.h"
#include "base/fd.h"
#include "base/result.h"

namespace gpr {

struct SessionOrder {
    AcceptorOptions options;
    std::string peer;
    bool plain = false;                 // this peer need not encrypt
    bool quiet = false;                 // nothing is logged before it has proven a token
    std::vector<std::string> features;  // this host's
    ProcessLimits process_limits;
    std::string cgroup_parent;  // a folder for the session's cgroup; empty: there is none
    std::string cgroup_mount;
    // Of an acceptor for one session on the initiator's own host: the line of its token, which
    // stands in no file. Then there is no daemon to ask.
    std::string token;
};

// An answered connection, the channel to the daemon or nothing, the order, and where to count.
struct OrderedSession {
    Fd connection;
    Fd channel;
    SessionOrder order;
    Fd tally;  // memory of a SessionTally; none: nobody looks
};

// Runs in a fresh child of the daemon: the session, to its end. The exit status.
using SessionStart = std::function<int(OrderedSession)>;

// Executes this program again, as `gpr serve-session`. Returns only if that fails.
int execute_session(OrderedSession session);
// What that then finds. Fails when somebody else has called it.
Result<OrderedSession> receive_session();

// In the worker, whichever way it came to be.
int serve_ordered(OrderedSession session, const WorkerMain& worker);

}  // namespace gpr
