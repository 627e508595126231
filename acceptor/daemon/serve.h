// One connection, from the socket to the end of its session. Runs in a process of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "acceptor/box/sandbox.h"
#include "acceptor/box/session_user.h"
#include "acceptor/daemon/network_allowance.h"
#include "base/fd.h"
#include "transport/handshake.h"

namespace gpr {

// The session itself; what it returns is the worker's exit status. It runs in the worker process,
// with default signal dispositions (SIGPIPE ignored): SIGTERM asks it to end. The link is made with
// make_link on a loop of its own.
using WorkerMain = std::function<int(EstablishedInitiator, Sandbox&)>;

struct ServeOptions {
    std::function<Result<TokenFile>()> load_tokens;  // for every connection anew
    std::string peer;
    bool allow_plain = false;
    bool quiet = false;                            // about a peer that proves no token
    std::vector<std::string> features;             // this host's, for the Welcome
    std::vector<std::string> hidden_cpu_features;  // by the names of monitor/node/host_match.h
    std::vector<std::string> exports;  // what of the file tree sessions may see, see exports.h
    // Called once the peer has proven its token: the devices it gets, and those there are, as far
    // as that is known. An error is told to the peer.
    std::function<Result<Welcome>(const Hello&)> admit = [](const Hello&) {
        return Result<Welcome>(Welcome{});
    };
    NetworkAllowance network;
    UserIds user_ids;      // the box's processes have one of these
    SessionLimits limits;  // that the cgroup has
    ProcessLimits process_limits;
    // A cgroup for the sandbox, made when it is needed; -1 for none. Stays open by the caller.
    std::function<Result<int>()> cgroup_fd = [] { return Result<int>(-1); };
};

// Exit statuses of workers; the WorkerMain chooses its own beyond these.
inline constexpr int worker_refused_peer = 100;
inline constexpr int worker_without_sandbox = 102;
inline constexpr int worker_not_executed = 103;

int serve_connection(Fd connection, const ServeOptions& options, const WorkerMain& worker);

}  // namespace gpr
