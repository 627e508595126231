#include "transport/handshake.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <thread>

#include "test_frames.h"
#include "test_session.h"
#include "transport/stream_link.h"
#include "transport/tls_stream.h"

using namespace gpr;
using namespace gpr::test;
using namespace std::chrono_literals;

namespace {

void check_says(const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
}

std::string initiator_error(const Outcome& outcome) {
    REQUIRE_FALSE(outcome.initiator);
    return outcome.initiator.error().message();
}
std::string acceptor_error(const Outcome& outcome) {
    REQUIRE_FALSE(outcome.acceptor);
    return outcome.acceptor.error().message();
}

Result<EstablishedInitiator> accept_plain(Fd socket, int timeout_ms, bool allow_plain = true) {
    TokenFile tokens{{test_token()}};
    return accept_session(std::move(socket), tokens, test_welcome(), {"peer", allow_plain},
                          in_ms(timeout_ms));
}

}  // namespace

TEST_CASE("both sides learn what the other is") {
    for (Wire wire : all_wires) {
        CAPTURE(name_of(wire));
        Attempt attempt;
        attempt.wire = wire;
        const auto before = sample_clocks();
        auto outcome = shake_hands(attempt);
        if (!outcome.initiator) FAIL(outcome.initiator.error().message());
        if (!outcome.acceptor) FAIL(outcome.acceptor.error().message());
        // Not the clocks of the moment when the hello was made.
        auto host = outcome.acceptor->peer.host;
        CHECK(host.clock.monotonic_ns >= before.monotonic_ns);
        CHECK(host.clock.monotonic_ns <= sample_clocks().monotonic_ns);
        host.clock = attempt.hello.host.clock;
        CHECK(host == attempt.hello.host);
        CHECK(outcome.initiator->peer.host == attempt.welcome.host);
        CHECK(outcome.initiator->peer.session_id == "s1");
        CHECK(outcome.acceptor->peer.session_id == "s1");
        CHECK(outcome.initiator->peer.node_id == 1);
        CHECK(outcome.acceptor->token_id == "tester");
        bool tls = wire == Wire::tls_v4 || wire == Wire::tls_v6;
        CHECK(outcome.acceptor->encrypted == tls);
        CHECK(outcome.initiator->encrypted == tls);
    }
}

TEST_CASE("who asks is told the sessions of an acceptor, as many as fit") {
    Attempt attempt;
    attempt.hello.only_looks = attempt.hello.want_sessions = true;
    attempt.hello.program = {"/usr/bin/x\x1b[2J", "anna", 77};
    attempt.hello.watches_futexes = true;
    SessionDescription session;
    session.id = "s7";
    session.host = "a";
    session.peer = "10.0.0.1:5";
    session.program = {"/bin/y", "bert", 78};
    session.since = 5'000'000'000;
    session.cpu_ns = 1ULL << 40;
    session.threads = 3;
    session.bytes_in = 1;
    session.bytes_out = 2;
    session.devices = {"gpu0", "gpu1"};
    session.arrivals = 4;
    session.faults = 5;
    session.calls = 6;
    attempt.welcome.sessions = {session};
    auto outcome = shake_hands(attempt);
    REQUIRE(outcome.initiator);
    REQUIRE(outcome.acceptor);
    CHECK(outcome.acceptor->peer.want_sessions);
    CHECK(outcome.acceptor->peer.watches_futexes);
    CHECK(outcome.acceptor->peer.program.name == "/usr/bin/x?[2J");
    CHECK(outcome.acceptor->peer.program.pid == 77);
    REQUIRE(outcome.initiator->peer.sessions.size() == 1);
    CHECK(outcome.initiator->peer.sessions.front() == session);

    session.program.name = std::string(400, 'n');
    attempt.welcome.sessions.assign(2000, session);
    outcome = shake_hands(attempt);
    REQUIRE(outcome.initiator);
    const size_t told = outcome.initiator->peer.sessions.size();
    CHECK(told > 64);  // as many as an acceptor lets in, by default
    CHECK(told < 300);
}

TEST_CASE("a wrong secret and an unknown token are refused, clearly, on both sides") {
    for (Wire wire : all_wires) {
        CAPTURE(name_of(wire));
        Attempt attempt;
        attempt.wire = wire;
        attempt.token = test_token(2);
        auto wrong = shake_hands(attempt);
        check_says(initiator_error(wrong), "refused the token tester");
        check_says(initiator_error(wrong), "gpr token new");
        // Without TLS the initiator leaves first: it does not trust this acceptor, either.
        bool tls = wire == Wire::tls_v4 || wire == Wire::tls_v6;
        check_says(acceptor_error(wrong),
                   tls ? "does not know the secret of token tester" : "closed the connection");

        attempt.token = test_token(1, "stranger");
        auto unknown = shake_hands(attempt);
        check_says(initiator_error(unknown), "refused the token stranger");
        check_says(acceptor_error(unknown), "unknown token stranger");
    }
}

TEST_CASE("after a handshake made in advance others succeed, and are refused, as before") {
    for (const bool refused : {true, false, false}) {
        TlsStream::prepare();
        for (int i = 0; i < 2; i++) {  // with what was prepared, and without
            Attempt attempt;
            if (refused) attempt.token = test_token(2);
            const auto outcome = shake_hands(attempt);
            if (refused) {
                check_says(initiator_error(outcome), "refused the token tester");
            } else {
                REQUIRE(outcome.acceptor);
                CHECK(outcome.acceptor->token_id == "tester");
                CHECK(outcome.initiator);
            }
            attempt.token = test_token(1, "nobody");
            CHECK_FALSE(shake_hands(attempt).acceptor);
        }
    }
}

TEST_CASE("an initiator that answers the challenge without the secret is refused") {
    auto sockets = connected(Wire::unix_socket);
    auto acceptor = std::async(std::launch::async,
                               [&] { return accept_plain(std::move(sockets.acceptor), 5000); });
    PlainStream stream(std::move(sockets.initiator));
    auto write = [&](const Bytes& bytes) {
        iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
        CHECK(stream.write({&part, 1}) == bytes.size());
    };
    FrameBuilder frame;
    std::array<uint8_t, 32> zeros{};
    auto claim = frame.message().initClaim();
    claim.setProtocolVersion(protocol_version);
    claim.setTokenId("tester");
    claim.setNonce(kj::arrayPtr(zeros.data(), zeros.size()));
    write(encode(frame));
    frame.restart();
    frame.message().initProof().setProof(kj::arrayPtr(zeros.data(), zeros.size()));
    write(encode(frame));
    auto result = acceptor.get();
    REQUIRE_FALSE(result);
    check_says(result.error().what, "does not know the secret of token tester");
}

TEST_CASE("expired tokens are named as such") {
    for (Wire wire : all_wires) {
        CAPTURE(name_of(wire));
        Attempt attempt;
        attempt.wire = wire;
        Token old = test_token();
        old.expires_at = now_seconds() - 3 * 86'400;
        attempt.tokens = TokenFile{{old}};
        auto outcome = shake_hands(attempt);  // the initiator's line does not say when
        check_says(initiator_error(outcome), "refused the token tester (expired 3 days ago)");
        check_says(acceptor_error(outcome), "token tester expired 3 days ago");
        attempt.token = old;
        check_says(initiator_error(shake_hands(attempt)), "token tester expired 3 days ago");
    }
}

TEST_CASE("unlike versions are told to both sides") {
    for (Wire wire : all_wires) {
        CAPTURE(name_of(wire));
        Attempt attempt;
        attempt.wire = wire;
        attempt.hello.version = protocol_version + 1;
        auto outcome = shake_hands(attempt);
        for (const auto& text : {initiator_error(outcome), acceptor_error(outcome)}) {
            check_says(text, fmt::format("the initiator speaks protocol version {}, the acceptor "
                                         "version {}",
                                         protocol_version + 1, protocol_version));
        }
    }
}

TEST_CASE("a TLS-only acceptor refuses plain TCP and says so") {
    Attempt attempt;
    attempt.wire = Wire::plain_tcp;
    attempt.allow_plain = false;
    auto outcome = shake_hands(attempt);
    check_says(initiator_error(outcome), "this acceptor wants TLS");
    check_says(acceptor_error(outcome), "wants TLS");
}

TEST_CASE("half-open, trickling and talkative strangers cost at most the deadline") {
    auto start = std::chrono::steady_clock::now();
    auto silent = connected(Wire::tls_v4);
    CHECK(accept_plain(std::move(silent.acceptor), 100).error().code == ETIMEDOUT);

    // Correct bytes, one at a time, of a TLS greeting and of a claim.
    Bytes claim = echo_frame(1);
    Bytes tls = {std::byte{0x16}, std::byte{3}, std::byte{1}, std::byte{2}, std::byte{0}};
    tls.resize(500, std::byte{1});
    for (const Bytes& bytes : {claim, tls}) {
        auto sockets = connected(Wire::tls_v4);
        std::jthread trickle([&](const std::stop_token& stop) {
            for (size_t i = 0; i < bytes.size() && !stop.stop_requested(); ++i) {
                ::send(sockets.initiator.get(), &bytes[i], 1, MSG_NOSIGNAL);
                std::this_thread::sleep_for(20ms);
            }
        });
        auto result = accept_plain(std::move(sockets.acceptor), 200);
        REQUIRE_FALSE(result);
    }
    // Generous: the deadlines above sum to half a second.
    CHECK(std::chrono::steady_clock::now() - start < 30s);
}

TEST_CASE("strangers are told apart in the error") {
    auto error_for = [](std::string_view bytes) {
        auto sockets = connected(Wire::tls_v4);
        ::send(sockets.initiator.get(), bytes.data(), bytes.size(), 0);
        ::shutdown(sockets.initiator.get(), SHUT_WR);
        auto result = accept_plain(std::move(sockets.acceptor), 2000);
        REQUIRE_FALSE(result);
        return result.error().what;
    };
    check_says(error_for(""), "connected and closed again");
    check_says(error_for("GET / HTTP/1.1\r\n\r\n"), "not a gpr frame");
    check_says(error_for("SSH-2.0-OpenSSH_9.2\r\n"), "not a gpr frame");
    check_says(error_for("\x16\x03\x01garbage garbage garbage"), "TLS");
    auto session = echo_frame(1);
    check_says(error_for({reinterpret_cast<const char*>(session.data()), session.size()}),
               "no claim");
}

TEST_CASE("an initiator recognises what is not an acceptor") {
    for (Wire wire : {Wire::tls_v4, Wire::plain_tcp}) {
        auto sockets = connected(wire);
        constexpr std::string_view ssh = "SSH-2.0-OpenSSH_9.2\r\n";
        ::send(sockets.acceptor.get(), ssh.data(), ssh.size(), 0);
        auto result = greet_acceptor(std::move(sockets.initiator), sockets.endpoint, test_token(),
                                     test_hello(), in_ms(2000));
        REQUIRE_FALSE(result);
        check_says(result.error().what, "acceptor " + sockets.endpoint.text());
        check_says(result.error().what, wire == Wire::tls_v4 ? "does not speak TLS" : "not a gpr");
    }
    auto silent = connected(Wire::tls_v4);
    auto result = greet_acceptor(std::move(silent.initiator), silent.endpoint, test_token(),
                                 test_hello(), in_ms(100));
    REQUIRE_FALSE(result);
    CHECK(result.error().code == ETIMEDOUT);
}

TEST_CASE("an acceptor with a certificate but no token is not accepted") {
    auto sockets = connected(Wire::tls_v4);
    ::fcntl(sockets.acceptor.get(), F_SETFL, 0);  // OpenSSL's own BIO wants a blocking socket
    std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_server_method()),
                                                         SSL_CTX_free);
    std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    std::unique_ptr<X509, void (*)(X509*)> certificate(X509_new(), X509_free);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    REQUIRE(X509_set_pubkey(certificate.get(), key.get()) == 1);
    REQUIRE(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0);
    REQUIRE(SSL_CTX_use_certificate(context.get(), certificate.get()) == 1);
    REQUIRE(SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1);
    auto impostor = std::async(std::launch::async, [&] {
        std::unique_ptr<SSL, void (*)(SSL*)> ssl(SSL_new(context.get()), SSL_free);
        SSL_set_fd(ssl.get(), sockets.acceptor.get());
        int rc = SSL_accept(ssl.get());
        // Its handshake may look complete to it; the first byte it wants never comes.
        char byte = 0;
        return rc == 1 ? SSL_read(ssl.get(), &byte, 1) : rc;
    });
    auto result = greet_acceptor(std::move(sockets.initiator), sockets.endpoint, test_token(),
                                 test_hello(), in_ms(5000));
    CHECK(impostor.get() <= 0);
    REQUIRE_FALSE(result);
    check_says(result.error().message(), "refused the token");
}
