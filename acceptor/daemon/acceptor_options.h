// What `gpr acceptor` was asked to do, after flags, environment and configuration are merged.
#pragma once

#include <cstdint>
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
    std::vector<std::string> exports;  // globs of files that sessions may see, besides the defaults
    NetworkAllowance network;          // for sessions that ask for sockets
    // For tests: CPU features to hide; "vdso": pretend that the vdso's functions lie elsewhere.
    std::vector<std::string> pretend_without;
    unsigned max_sessions = 64;  // more are refused with a reason
    unsigned drain_s = 0;        // for sessions to leave before it ends; 0: they end at once
    SessionLimits limits;        // of each session
    // Where contents of files are kept for later sessions; empty: nowhere. And how many bytes.
    std::string cache_folder = "/var/cache/gpr";
    uint64_t cache_bytes = uint64_t{8} << 30;
    bool cache_wanted = false;  // the administrator has asked for exactly this folder
    // Whether the default limit applies because nobody has set one.
    bool limits_memory = true, limits_tasks = true;
    UserIds user_ids = default_user_ids;  // of sessions; none: this process's user
    bool user_ids_wanted = false;         // the administrator has asked for exactly these
};

}  // namespace gpr
