#include "acceptor/serve.h"

#include <spdlog/spdlog.h>

#include "acceptor/exports.h"
#include "monitor/host_match.h"
#include "transport/link.h"
#include "transport/loop.h"

namespace gpr {
namespace {

constexpr auto farewell_time = std::chrono::seconds(2);

// The peer should hear why, but is not waited for long.
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
    for (const std::string& name : options.hidden_cpu_features) {
        hide_feature(welcome.host.cpu, name);
    }
    return welcome;
}

Result<EstablishedInitiator> prove_peer(Fd connection, const ServeOptions& options) {
    const auto deadline = std::chrono::steady_clock::now() + handshake_timeout;
    GPR_TRY(const auto tokens, options.load_tokens());
    const AcceptOptions accept_options{options.peer, options.allow_plain};
    return accept_session(std::move(connection), tokens, make_welcome(options), accept_options,
                          deadline);
}

SandboxOptions sandbox_options(const Hello& hello, int cgroup_fd) {
    SandboxOptions options;
    options.host_name = hello.host.host_name;
    options.clock_offsets = clock_offsets(hello.host.clock, sample_clocks());
    options.cgroup_fd = cgroup_fd;
    return options;
}

}  // namespace

int serve_connection(Fd connection, const ServeOptions& options, const WorkerMain& worker) {
    auto established = prove_peer(std::move(connection), options);
    if (!established) {
        spdlog::warn("{}: refused: {}", options.peer, established.error().message());
        return worker_refused_peer;
    }
    const auto& hello = established->peer;
    if (const auto admitted = options.admit(); !admitted) {
        spdlog::warn("{}: session {} not admitted: {}", options.peer, hello.session_id,
                     admitted.error().message());
        say_goodbye(std::move(*established), admitted.error().message());
        return worker_not_admitted;
    }
    spdlog::info("{}: session {} begins, for {} with token {}{}", options.peer, hello.session_id,
                 hello.host.host_name, established->token_id,
                 established->encrypted ? "" : ", not encrypted");
    auto views = plan_views(hello.paths, options.exports);
    if (!views) {
        spdlog::warn("{}: session {}: {}", options.peer, hello.session_id, views.error().message());
        say_goodbye(std::move(*established), views.error().message());
        return worker_without_sandbox;
    }
    auto box = sandbox_options(hello, options.cgroup_fd());
    box.views = std::move(*views);
    const auto sandbox = Sandbox::create(box);
    if (!sandbox) {
        spdlog::error("{}: session {}: {}", options.peer, hello.session_id,
                      sandbox.error().message());
        say_goodbye(std::move(*established), sandbox.error().message());
        return worker_without_sandbox;
    }
    return worker(std::move(*established), **sandbox);
}

}  // namespace gpr
