// `gpr health [ADDR]`: what this host has, and what an acceptor says about itself.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/log.h"
#include "tools/acceptor_greeting.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/common_settings.h"
#include "tools/health_report.h"
#include "transport/handshake.h"

namespace gpr {
namespace {

const CommandSpec& health_spec() {
    static const CommandSpec spec{
        "health",
        "[OPTION]... [ADDR]",
        "Say what this host has for gpr, what is missing and what to do about it; with ADDR, what\n"
        "the acceptor there says about itself.",
        {token_file_setting, plain_setting, config_setting},
        false,
        1,
        "exit status: 0 nothing required is missing, 1 something is or the acceptor did not "
        "answer"};
    return spec;
}

int check_acceptor(const std::string& address, const ParsedCommand& parsed,
                   const KernelFeatures& features) {
    const auto gathered =
        gather_settings(health_spec(), parsed.flags, [](const char* name) { return getenv(name); });
    Hello hello;
    hello.host.features = features.names();
    auto peer = gathered ? greet_acceptor_at(address, gathered->settings, std::move(hello))
                         : Result<EstablishedAcceptor>(tl::unexpect, gathered.error());
    if (!peer) {
        complain(peer.error().message());
        return exit_failed;
    }
    const HostDescription& host = peer->peer.host;
    fmt::print("\n{}", peer_report(peer->peer_name, host, features));
    fmt::print("{:<16}{}, {}\n", "link", peer->encrypted ? "TLS 1.3" : "not encrypted",
               peer->peer.software);
    return lacking_at(host, features).empty() ? 0 : exit_failed;
}

}  // namespace

int health_main(const Words& arguments) {
    const auto parsed = parse_command(health_spec(), arguments);
    if (!parsed) {
        complain(parsed.error().message());
        return exit_usage;
    }
    if (parsed->wants_help) {
        std::fputs(help_text(health_spec()).c_str(), stdout);
        return 0;
    }
    const KernelFeatures features = KernelFeatures::probe();
    std::fputs(features_report(features).c_str(), stdout);
    const int here = features.lacking().empty() ? 0 : exit_failed;
    if (geteuid() != 0) {
        std::fputs(
            "A normal user can be an initiator; an acceptor, '--acceptor local' as well, is"
            " started by root.\n",
            stdout);
    }
    if (parsed->words.empty() || parsed->words.front() == "local") return here;
    const int there = check_acceptor(parsed->words.front(), *parsed, features);
    return here != 0 ? here : there;
}

}  // namespace gpr
