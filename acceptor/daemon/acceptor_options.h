// What `gpr acceptor` was asked to do, once flags, environment and configuration are merged.
#pragma once

#include <string>
#include <vector>

#include "acceptor/box/session_limits.h"
#include "acceptor/box/session_user.h"
#include "acceptor/daemon/network_allowance.h"

namespace gpr {

struct AcceptorOptions {
    std::vector<std::string> listen;   // HOST:PORT, [V6]:PORT or unix:/path; at least one
    std::string token_file;            // never empty
    bool plain_allowed = false;        // TCP without TLS, because the user said so
    std::string metrics;               // where counts can be fetched; empty: nowhere
    std::string log_file;              // empty: stderr
    std::string log_level = "info";    // trace, debug, info, warning, error, off
    std::vector<std::string> exports;  // of the file tree, besides the defaults: globs
    NetworkAllowance network;          // of sessions that ask for it
    // For tests: CPU features to keep quiet about; "vdso": its functions are not where they are.
    std::vector<std::string> pretend_without;
    unsigned max_sessions = 64;  // further ones are refused with a reason
    SessionLimits limits;        // of each session
    // Where nobody has said anything, there is a limit all the same.
    bool limits_memory = true, limits_tasks = true;
    UserIds user_ids = default_user_ids;  // of sessions; none: that of this process
    bool user_ids_wanted = false;         // somebody asked for just these
};

}  // namespace gpr
