// What the daemon passes to a worker. A worker executes gpr anew, so that each session has its own
// address space layout and nothing of the daemon's memory; this is all that it gets.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "acceptor/box/folder_names.h"
#include "acceptor/daemon/acceptor_options.h"
#include "acceptor/daemon/serve.h"
#include "base/fd.h"
#include "base/result.h"

namespace gpr {

struct SessionOrder {
    AcceptorOptions options;
    std::string peer;
    bool plain = false;                 // this peer may connect without TLS
    bool quiet = false;                 // log nothing before it has proven a token
    std::vector<std::string> features;  // this host's
    ProcessLimits process_limits;
    std::string cgroup_parent;  // folder for the session's cgroup; empty: none
    std::string cgroup_mount;
    // For an acceptor for one session on home's own host: the line of its token, which is in no
    // file. Such an acceptor has no daemon to ask.
    std::string token;
};

// An accepted connection, the channel to the daemon if there is one, and the order.
struct OrderedSession {
    Fd connection;
    Fd channel;
    SessionOrder order;
    Fd tally;                  // memory of a SessionTally; none if nobody reads it
    FolderNames folders = {};  // what the worker has read while it waited
};

// Runs the session, in a new child of the daemon, to its end. Returns the exit status.
using SessionStart = std::function<int(OrderedSession)>;

// Executes this program again, as `gpr serve-session`. Returns only if that fails.
int execute_session(OrderedSession session);
// Executes it before there is a session: receive_session() waits there for hand_over() at the other
// end of the socket. Returns only if that fails.
int execute_spare(Fd socket);
bool hand_over(const Fd& to, const OrderedSession& session);
// What the new program receives. Fails if something else has started it. One that waits in vain
// ends here.
Result<OrderedSession> receive_session();

// Serves the session in the worker, however that was started.
int serve_ordered(OrderedSession session, const WorkerMain& worker);

}  // namespace gpr
