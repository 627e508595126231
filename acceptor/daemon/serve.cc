#include "acceptor/daemon/serve.h"

#include <spdlog/spdlog.h>

#include "acceptor/box/exports.h"
#include "acceptor/box/network_connector.h"
#include "acceptor/box/privileges.h"
#include "acceptor/devices/device_choice.h"
#include "acceptor/devices/inventory.h"
#include "monitor/node/host_match.h"
#include "monitor/rules/path_rules.h"
#include "syscall/call_choice.h"
#include "transport/link.h"
#include "transport/loop.h"

namespace gpr {
namespace {

constexpr auto farewell_time = std::chrono::seconds(2);

// Tells the peer the reason, but does not wait long until it has read that.
void say_goodbye(EstablishedInitiator established, const std::string& reason) {
    auto loop = Loop::create();
    if (!loop) return;
    const auto link = make_link(**loop, std::move(established));
    link->on_closed([&loop](const Error&) { (*loop)->stop(); });
    (*loop)->after(farewell_time, [&loop] { (*loop)->stop(); });
    link->close(reason);
    (*loop)->run();
}

Welcome make_welcome(const ServeOptions& options) {
    Welcome welcome;
    welcome.software = "gpr " GPR_VERSION;
    welcome.host = describe_this_host();
    welcome.host.features = options.features;
    welcome.keeps_contents = options.keeps_contents;
    for (const std::string& name : options.hidden_cpu_features) {
        hide_feature(welcome.host.cpu, name);
    }
    for (const DeviceNode& node : list_device_nodes("", options.exports)) {
        welcome.host.devices.push_back(node.path);
    }
    return welcome;
}

// What the session gets of this host's files.
struct Admitted {
    std::vector<SandboxMount> mounts;
    std::vector<std::string> standby;  // profiles that this host has files for
};

// hidden: device nodes that the session does not get.
Result<Admitted> plan_files(ServeOptions& options, const Hello& hello,
                            const std::vector<std::string>& hidden) {
    Admitted files;
    files.standby = standby_profiles(hello.paths, options.exports, hidden, options.folders);
    auto wanted = hello.paths;
    keep_standby(wanted, files.standby);
    std::erase_if(wanted, [](const RemotePath& rule) { return rule.glob.empty(); });
    GPR_TRY(files.mounts, plan_mounts(wanted, options.exports, hidden));
    return files;
}

// Decides what the peer gets before it is welcomed, so that a refused peer learns nothing else.
Result<> admit_peer(ServeOptions& options, const Hello& hello, Welcome& welcome,
                    Admitted& admitted) {
    options.ask(hello);
    const bool has_session = !hello.want_inventory && !hello.only_looks;
    // While the daemon decides; most hosts hide nothing.
    auto files = has_session ? plan_files(options, hello, {}) : Admitted{};
    GPR_TRY(auto verdict, options.admit(hello));
    if (hello.want_inventory) {
        welcome.inventory = std::move(verdict.inventory);
        return {};
    }
    if (hello.only_looks) {
        welcome.sessions = std::move(verdict.sessions);
        return {};
    }
    GPR_CHECK(check_calls(hello.calls, options.network));
    GPR_CHECK(check_rules_show(verdict.devices, hello.paths));
    const auto hidden = hidden_nodes(verdict.inventory.devices, verdict.devices);
    if (!hidden.empty()) files = plan_files(options, hello, hidden);
    GPR_TRY(admitted, std::move(files));
    welcome.standby = admitted.standby;
    welcome.devices = std::move(verdict.devices);
    return {};
}

Result<EstablishedInitiator> prove_peer(Fd connection, ServeOptions& options, Admitted& admitted) {
    const auto deadline = std::chrono::steady_clock::now() + handshake_timeout;
    GPR_TRY(const auto tokens, options.load_tokens());
    AcceptOptions accept_options{options.peer, options.allow_plain};
    accept_options.admit = [&](const Hello& hello, Welcome& welcome) {
        return admit_peer(options, hello, welcome, admitted);
    };
    return accept_session(std::move(connection), tokens, make_welcome(options), accept_options,
                          deadline);
}

// Only root of the host may administer the host's network.
Result<SessionUser> take_user(const Hello& hello, const ServeOptions& serve) {
    if (network_needs(hello.calls).network != nullptr && serve.network.raw) return SessionUser();
    return SessionUser::take(serve.user_ids);
}

// What a session runs in. The network is destroyed first.
struct Box {
    std::unique_ptr<Sandbox> sandbox;
    std::unique_ptr<NetworkConnector> connector;  // null: no network, or this host's
};

Result<Box> make_box(const Hello& hello, const ServeOptions& serve,
                     std::vector<SandboxMount> mounts, const SessionUser& user) {
    SandboxOptions options;
    options.user = user.id();
    options.user_lock = user.lock();
    options.host_name = hello.host.host_name;
    options.clock_offsets = clock_offsets(hello.host.clock, sample_clocks());
    GPR_TRY(options.cgroup_fd, serve.cgroup_fd());
    options.limits = serve.limits;
    options.process_limits = serve.process_limits;
    options.mounts = std::move(mounts);
    const bool needs_network = network_needs(hello.calls).network != nullptr;
    options.host_network = needs_network && serve.network.is_of_host();
    // Before the box is made, so that all processes of the session can reach each other.
    if (options.host_network && serve.network.only_own_abstract_sockets) {
        GPR_CHECK(leave_abstract_sockets());
    }
    if (options.host_network && serve.network.raw) {
        options.capabilities |= uint64_t{1} << CAP_NET_RAW;
    }
    Box box;
    GPR_TRY(box.sandbox, Sandbox::create(options));
    if (needs_network && !options.host_network) {
        const NetworkAllowance& network = serve.network;
        GPR_TRY(const auto ports, SessionPorts::take(network.ports, network.ports_each));
        GPR_TRY(box.connector,
                NetworkConnector::start({network.connector, box.sandbox->init_pid(), options.user,
                                         options.cgroup_fd, ports.range()}));
    }
    return box;
}

// The error without the beginning that the log line repeats: the peer, and that it is refused.
std::string reason_of(const Error& error, const std::string& peer) {
    const std::string whole = error.message();
    std::string_view reason = whole;
    for (const std::string& known :
         {fmt::format("initiator {}: ", peer), std::string("refused: ")}) {
        if (reason.starts_with(known)) reason.remove_prefix(known.size());
    }
    return fmt::format("{}{}", reason.starts_with("is full") ? "this acceptor " : "", reason);
}

}  // namespace

int serve_connection(Fd connection, ServeOptions& options, const WorkerMain& worker) {
    Admitted admitted;
    auto established = prove_peer(std::move(connection), options, admitted);
    if (!established) {
        if (!options.quiet) {
            spdlog::warn("{}: refused: {}", options.peer,
                         reason_of(established.error(), options.peer));
        }
        return worker_refused_peer;
    }
    const auto& hello = established->peer;
    if (hello.want_inventory) {
        spdlog::info("{}: {} was told the inventory", options.peer, hello.host.host_name);
        return 0;
    }
    if (hello.only_looks) {
        spdlog::info("{}: {} {}", options.peer, hello.host.host_name,
                     hello.want_sessions ? "was told the sessions" : "looked");
        return 0;
    }
    spdlog::info("{}: session {} begins, for {} with token {}{}", options.peer, hello.session_id,
                 hello.host.host_name, established->token_id,
                 established->encrypted ? "" : ", not encrypted");
    const auto user = take_user(hello, options);
    const Result<Box> box = user ? make_box(hello, options, std::move(admitted.mounts), *user)
                                 : tl::make_unexpected(user.error());
    if (!box) {
        spdlog::error("{}: session {}: {}", options.peer, hello.session_id, box.error().message());
        say_goodbye(std::move(*established), box.error().message());
        return worker_without_sandbox;
    }
    keep_standby(established->peer.paths, admitted.standby);
    return worker(std::move(*established), *box->sandbox);
}

}  // namespace gpr
