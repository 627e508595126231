#include "monitor/launch/connections.h"

#include <pwd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/log.h"
#include "monitor/node/host_match.h"
#include "monitor/rules/call_rules.h"
#include "monitor/rules/path_rules.h"
#include "monitor/rules/split_policy.h"

namespace gpr {

namespace {

constexpr uint64_t usual_files = 4096;  // how many files programs may usually have open
constexpr uint64_t least_room = 1024;   // for an acceptor's descriptors

// Whether the acceptor may get descriptors in the session: by its rules, or by a profile that it
// has files for.
bool may_have_files(const ExecOptions& options, NodeId node, const Welcome& peer) {
    PathRules paths(path_rules_of(options.rules, node));
    paths.keep_standby(peer.standby);
    return !paths.empty() || !remote_calls_of(options.rules, node).empty();
}

DeviceRequest devices_wanted(const ExecOptions& options, NodeId node) {
    return node == 1 ? DeviceRequest{options.device_count, options.devices} : DeviceRequest{};
}

}  // namespace

bool watches_futexes(const ExecOptions& options) {
    return options.bpf && SplitPolicy(options.rules, options.attaches).mixed();
}

bool watches_names(const ExecOptions& options) {
    const PathRules paths(path_rules_of(options.rules));
    auto stands_by = [](const RemotePath& rule) { return !rule.standby.empty(); };
    return options.bpf && !options.attaches && SplitPolicy(options.rules).rests() &&
           !paths.empty() && std::ranges::all_of(paths.all(), stands_by);
}

Hello hello_of(const ExecOptions& options, NodeId node, const std::string& session, pid_t program) {
    Hello hello;
    hello.software = "gpr";
    hello.session_id = session;
    hello.node_id = node;
    hello.host = describe_this_host();
    hello.root_links = read_root_links();
    const PathRules paths(path_rules_of(options.rules, node), hello.root_links);
    hello.paths = paths.all();
    hello.calls = remote_calls_of(options.rules, node);
    hello.vdso = own_vdso();
    const passwd* user = getpwuid(geteuid());
    hello.program = {options.program_path, user ? user->pw_name : fmt::format("{}", geteuid()),
                     program};
    hello.devices = devices_wanted(options, node);
    hello.watches_futexes = watches_futexes(options);
    return hello;
}

Result<EstablishedAcceptor> greet_acceptor_of(const ExecOptions& options, NodeId node,
                                              const LogOptions& log,
                                              const StartLocalAcceptor& start_local,
                                              const HelloSource& hello) {
    const AcceptorAddress& acceptor = options.acceptors.at(node - 1u);
    auto deadline = std::chrono::steady_clock::now() + handshake_timeout;
    if (!devices_wanted(options, node).empty()) deadline += inventory_timeout;
    if (acceptor.is_local()) {
        GPR_TRY(auto local, start_local(log));
        Endpoint endpoint{Endpoint::Kind::unix_socket, "", 0, "local acceptor", true};
        GPR_TRY(auto greeted, greet_acceptor(std::move(local.connection), endpoint, local.token,
                                             hello, deadline));
        greeted.peer_name = "local";
        return greeted;
    }
    GPR_TRY(auto endpoint, parse_endpoint(acceptor.address, options.plain_allowed));
    if (options.token_file.empty()) {
        return fail("no token for " + acceptor.address +
                    "; name a file with --token-file (made by 'gpr token new' on the acceptor)");
    }
    GPR_TRY(auto tokens, TokenFile::load(options.token_file));
    GPR_TRY(auto token, tokens.first_usable(now_seconds()));
    // First, as the acceptor then starts a process for the session, while we look for what to say.
    GPR_TRY(Fd socket, connect_endpoint(endpoint, deadline));
    return greet_acceptor(std::move(socket), endpoint, token, hello, deadline);
}

void tell_of(const EstablishedAcceptor& acceptor) {
    const HostDescription& host = acceptor.peer.host;
    spdlog::info("connected to {}: {}, {}, Linux {}, {} x {}", acceptor.peer_name,
                 acceptor.encrypted ? "TLS 1.3" : "not encrypted", acceptor.peer.software,
                 host.kernel_release, host.cpu.count, host.cpu.model);
    if (!acceptor.peer.standby.empty()) {
        spdlog::info("it has something for these profiles, which stand by: {}",
                     fmt::join(acceptor.peer.standby, ", "));
    }
    for (const Device& device : acceptor.peer.devices) {
        spdlog::info("the session gets {} ({})", device.id, device.name);
    }
    spdlog::debug("agreed: protocol {}, token {}, session {}", acceptor.peer.version,
                  acceptor.token_id, acceptor.peer.session_id);
    if (!host.features.empty()) spdlog::debug("it has {}", fmt::join(host.features, ", "));
}

std::string text_of(const AcceptorAddress& acceptor) {
    const bool has_name = acceptor.name.find_first_not_of("0123456789") != std::string::npos;
    return has_name ? fmt::format("{} ({})", acceptor.name, acceptor.address) : acceptor.address;
}

Result<std::vector<FdRange>> choose_fd_ranges(const ExecOptions& options,
                                              const std::vector<EstablishedAcceptor>& acceptors,
                                              pid_t program) {
    std::vector<FdRange> ranges(acceptors.size());
    uint64_t limit = UINT64_MAX, with_files = 0;
    for (size_t i = 0; i < acceptors.size(); i++) {
        if (!may_have_files(options, static_cast<NodeId>(i + 1), acceptors[i].peer)) continue;
        limit = std::min(limit, acceptors[i].peer.host.limits.open_files_hard);
        with_files++;
    }
    if (with_files == 0) return ranges;
    rlimit its{};
    prlimit(program, RLIMIT_NOFILE, nullptr, &its);
    const uint64_t room = least_room * with_files;
    uint64_t base = std::max<uint64_t>(its.rlim_cur, usual_files);
    base = std::min(base, limit > 2 * room ? limit - room : limit / 2);
    const uint64_t each = (limit - base) / with_files;
    if (each < least_fds_of_acceptor) {
        return fail(
            fmt::format("{} acceptors have files for the program, for which a limit "
                        "of {} open files leaves no room; raise it there (ulimit -n)",
                        with_files, limit));
    }
    for (size_t i = 0; i < acceptors.size(); i++) {
        if (!may_have_files(options, static_cast<NodeId>(i + 1), acceptors[i].peer)) continue;
        ranges[i].base = static_cast<unsigned>(base);
        base += each;
        // The last (or only) acceptor gets all the rest.
        if (--with_files > 0) ranges[i].last = static_cast<unsigned>(base - 1);
        spdlog::debug("descriptors of {} have numbers from {} on", acceptors[i].peer_name,
                      ranges[i].base);
    }
    return ranges;
}

Result<std::string> meet_lacks(const ExecOptions& options, const std::string& tunables,
                               const std::vector<std::string>& lacking) {
    if (lacking.empty()) return tunables;
    std::string refusal =
        fmt::format("cannot run what was begun here: it lacks {}; ", fmt::join(lacking, ", "));
    if (!can_be_masked(lacking)) return fail(refusal + "choose an acceptor with a like CPU");
    if (!options.mask_cpu) {
        return fail(refusal +
                    "choose an acceptor with a like CPU, or hide them from the "
                    "program's C library with --mask-cpu");
    }
    spdlog::info("hidden from the program's C library: {}", fmt::join(lacking, ", "));
    return with_masked_features(tunables, lacking);
}

}  // namespace gpr
