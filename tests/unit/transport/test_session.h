// Two proven ends of a session over a real socket, for tests of handshake and link.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <future>
#include <memory>
#include <string>

#include "transport/byte_stream.h"
#include "transport/frame_receiver.h"
#include "transport/handshake.h"

namespace gpr::test {

enum class Wire { unix_socket, plain_tcp, tls_v4, tls_v6 };
inline constexpr Wire all_wires[] = {Wire::unix_socket, Wire::plain_tcp, Wire::tls_v4,
                                     Wire::tls_v6};

inline std::string name_of(Wire wire) {
    constexpr const char* names[] = {"unix socket", "plain TCP", "TLS on IPv4", "TLS on IPv6"};
    return names[static_cast<int>(wire)];
}

inline Deadline in_ms(int ms) {
    return std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
}

inline Endpoint listen_address(Wire wire) {
    static int count = 0;
    switch (wire) {
        case Wire::unix_socket:
            return *parse_endpoint(
                fmt::format("unix:/tmp/gpr-session-test-{}-{}", ::getpid(), count++));
        case Wire::plain_tcp: return *parse_endpoint("tcp://127.0.0.1:0", true);
        case Wire::tls_v4: return *parse_endpoint("127.0.0.1:0");
        case Wire::tls_v6: return *parse_endpoint("[::1]:0");
    }
    return {};
}

struct Sockets {
    Fd initiator;
    Fd acceptor;
    Endpoint endpoint;
};

inline Sockets connected(Wire wire) {
    auto listeners = Listener::listen(listen_address(wire));
    GPR_ASSERT(listeners.has_value());
    Sockets result;
    result.endpoint = listeners->front().endpoint();
    auto client = connect_endpoint(result.endpoint, in_ms(5000));
    GPR_ASSERT(client.has_value());
    pollfd waiting{listeners->front().fd(), POLLIN, 0};
    ::poll(&waiting, 1, 5000);
    auto accepted = listeners->front().accept();
    GPR_ASSERT(accepted.has_value());
    result.initiator = std::move(*client);
    result.acceptor = std::move(accepted->fd);
    return result;
}

inline Token test_token(uint8_t fill = 1, std::string id = "tester") {
    Token token;
    token.id = std::move(id);
    token.secret.fill(fill);
    return token;
}

inline Hello test_hello() {
    Hello hello;
    hello.software = "gpr test";
    hello.session_id = "s1";
    hello.host = describe_this_host();
    hello.host.features = {"one", "two"};
    return hello;
}

inline Welcome test_welcome() {
    Welcome welcome;
    welcome.software = "gpr test";
    welcome.host = describe_this_host();
    welcome.host.devices = {"/dev/kvm"};
    return welcome;
}

struct Outcome {
    Result<EstablishedAcceptor> initiator;
    Result<EstablishedInitiator> acceptor;
};

struct Attempt {
    Wire wire = Wire::tls_v4;
    Token token = test_token();
    TokenFile tokens{{test_token()}};
    Hello hello = test_hello();
    Welcome welcome = test_welcome();
    bool allow_plain = true;
    int timeout_ms = 5000;
    std::function<Result<>(const Hello&, Welcome&)> admit = {};
};

inline Outcome shake_hands(const Attempt& attempt) {
    Sockets sockets = connected(attempt.wire);
    auto acceptor = std::async(std::launch::async, [&] {
        return accept_session(std::move(sockets.acceptor), attempt.tokens, attempt.welcome,
                              {"peer", attempt.allow_plain, attempt.admit},
                              in_ms(attempt.timeout_ms));
    });
    auto initiator = greet_acceptor(std::move(sockets.initiator), sockets.endpoint, attempt.token,
                                    attempt.hello, in_ms(attempt.timeout_ms));
    return {std::move(initiator), acceptor.get()};
}

inline Outcome shake_hands(Wire wire) {
    Attempt attempt;
    attempt.wire = wire;
    auto outcome = shake_hands(attempt);
    GPR_ASSERT(outcome.initiator.has_value() && outcome.acceptor.has_value());
    return outcome;
}

}  // namespace gpr::test
