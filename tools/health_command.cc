// `gpr health [ADDR]`: what this host has, and what an acceptor says about itself.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/log.h"
#include "monitor/rules/exec_options.h"
#include "tools/acceptor_greeting.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/common_settings.h"
#include "tools/health_report.h"
#include "transport/handshake.h"

namespace gpr {

const CommandSpec& health_spec() {
    static const CommandSpec spec{
        "health",
        "[OPTION]... [ADDR]",
        "Say whether this host can run gpr, and what to do where it cannot; with ADDR, what the\n"
        "acceptor there says about itself.",
        {all_setting, json_setting, token_file_setting, plain_setting, config_setting},
        false,
        1,
        "exit status: 0 nothing required is missing, 1 something is or the acceptor did not "
        "answer"};
    return spec;
}

namespace {

// Asks for the welcome only, so that an acceptor without room for another session answers, too.
Result<EstablishedAcceptor> ask_acceptor(const std::string& address, const Settings& settings,
                                         const KernelFeatures& features) {
    Hello hello;
    hello.host.features = features.names();
    hello.only_looks = true;
    return greet_acceptor_at(address, settings, std::move(hello));
}

std::string text_on(const EstablishedAcceptor& peer, const KernelFeatures& features) {
    const HostDescription& host = peer.peer.host;
    std::string text = '\n' + peer_report(peer.peer_name, host, features);
    text += fmt::format("{:<16}{}, {}\n", "link", peer.encrypted ? "TLS 1.3" : "not encrypted",
                        peer.peer.software);
    if (lacking_at(host, features).empty())
        text += "OK: this acceptor has all that sessions need.\n";
    return text;
}

int check(const ParsedCommand& parsed, const GatheredSettings& gathered) {
    const Settings asked({parsed.flags});
    const KernelFeatures features = KernelFeatures::probe();
    bool good = features.lacking().empty();
    nlohmann::json answer = health_json(features);
    if (!asked.toggle(json_setting.name)) {
        if (asked.toggle(all_setting.name)) std::fputs(features_table(features).c_str(), stdout);
        std::fputs(health_verdict(features, geteuid() == 0).c_str(), stdout);
    }
    const std::string where = parsed.words.empty() ? local_acceptor : parsed.words.front();
    if (where != local_acceptor) {
        const auto peer = ask_acceptor(address_of(where, gathered), gathered.settings, features);
        if (!peer) {
            complain(peer.error().message());
            answer["acceptor"] = {{"ok", false}, {"error", peer.error().message()}};
            good = false;
        } else {
            answer["acceptor"] = peer_json(peer->peer_name, peer->peer.host, features);
            good = good && lacking_at(peer->peer.host, features).empty();
            if (!asked.toggle(json_setting.name)) {
                std::fputs(text_on(*peer, features).c_str(), stdout);
            }
        }
    }
    if (asked.toggle(json_setting.name)) fmt::print("{}\n", answer.dump(2));
    return good ? 0 : exit_failed;
}

}  // namespace

int health_main(const Words& arguments) {
    const auto refuse = [](const Error& error) {
        complain(error.message());
        return exit_usage;
    };
    const auto parsed = parse_command(health_spec(), arguments);
    if (!parsed) return refuse(parsed.error());
    if (parsed->wants_help) {
        std::fputs(help_text(health_spec()).c_str(), stdout);
        return 0;
    }
    const auto gathered = gather_settings(health_spec(), parsed->flags,
                                          [](const char* name) { return getenv(name); });
    if (!gathered) return refuse(gathered.error());
    return check(*parsed, *gathered);
}

}  // namespace gpr
