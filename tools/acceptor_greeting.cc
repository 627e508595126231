#include "tools/acceptor_greeting.h"

#include "transport/endpoint.h"
#include "transport/token.h"

namespace gpr {

Result<EstablishedAcceptor> greet_acceptor_at(const std::string& address, const Settings& settings,
                                              Hello hello) {
    GPR_TRY(const Endpoint endpoint, parse_endpoint(address, settings.toggle("plain")));
    if (!settings.has("token-file")) {
        return fail(fmt::format("acceptor {} wants a token; add '--token-file FILE'", address));
    }
    GPR_TRY(const TokenFile tokens, TokenFile::load(settings.text("token-file")));
    GPR_TRY(const Token token, tokens.first_usable(now_seconds()));
    hello.software = "gpr " GPR_VERSION;
    hello.session_id = new_session_id();
    const auto features = std::move(hello.host.features);
    hello.host = describe_this_host();
    hello.host.features = features;
    const auto patience =
        hello.want_inventory ? handshake_timeout + inventory_timeout : default_connect_timeout;
    return connect_session(endpoint, token, hello, std::chrono::steady_clock::now() + patience);
}

}  // namespace gpr
