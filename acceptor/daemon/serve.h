// Serves one connection, from the socket to the end of its session, in a process of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "acceptor/box/folder_names.h"
#include "acceptor/box/sandbox.h"
#include "acceptor/box/session_user.h"
#include "acceptor/daemon/network_allowance.h"
#include "base/fd.h"
#include "transport/handshake.h"

namespace gpr {

// Runs the session itself and returns the worker's exit status. Called in the worker process with
// default signal dispositions (except that SIGPIPE is ignored): SIGTERM asks it to end. It creates
// its own loop and makes the link with make_link.
using WorkerMain = std::function<int(EstablishedInitiator, Sandbox&)>;

struct ServeOptions {
    std::function<Result<TokenFile>()> load_tokens;  // called for every connection
    std::string peer;
    bool allow_plain = false;
    bool quiet = false;                            // do not log a peer that proves no token
    std::vector<std::string> features;             // this host's, for the Welcome
    bool keeps_contents = false;                   // of files, for later sessions
    std::vector<std::string> hidden_cpu_features;  // by their names in monitor/node/host_match.h
    std::vector<std::string> exports;              // files that sessions may see, see exports.h
    FolderNames folders;                           // perhaps read in advance
    // Called once the peer has proven its token; admit() follows.
    std::function<void(const Hello&)> ask = [](const Hello&) {};
    // Returns the devices that the peer gets, and the inventory if that is known. The peer is told
    // of an error.
    std::function<Result<Welcome>(const Hello&)> admit = [](const Hello&) {
        return Result<Welcome>(Welcome{});
    };
    NetworkAllowance network;
    UserIds user_ids;      // for the box's processes
    SessionLimits limits;  // set in the cgroup
    ProcessLimits process_limits;
    // Makes a cgroup for the sandbox; -1 for none. The caller keeps the descriptor open.
    std::function<Result<int>()> cgroup_fd = [] { return Result<int>(-1); };
};

// Exit statuses of workers; WorkerMain chooses others.
inline constexpr int worker_refused_peer = 100;
inline constexpr int worker_without_sandbox = 102;
inline constexpr int worker_not_executed = 103;

int serve_connection(Fd connection, ServeOptions& options, const WorkerMain& worker);

}  // namespace gpr
