#include "transport/metrics_server.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

using namespace gpr;

namespace {

// Serves whatever waits, until nothing does for 20 ms.
void serve(MetricsServer& server) {
    pollfd events{server.fd(), POLLIN, 0};
    while (poll(&events, 1, 20) > 0) server.serve();
}

Fd connected_to(const MetricsServer& server) {
    auto endpoint = parse_endpoint(server.address(), true);
    REQUIRE(endpoint);
    auto fd =
        connect_endpoint(*endpoint, std::chrono::steady_clock::now() + std::chrono::seconds(5));
    REQUIRE(fd);
    return std::move(*fd);
}

void say(const Fd& client, const std::string& text) {
    REQUIRE(send(client.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(text.size()));
}

// All that comes until the server ends the connection; "open" if it does not.
std::string heard_by(const Fd& client, MetricsServer& server) {
    std::string text;
    for (int tries = 0; tries < 1000; tries++) {
        serve(server);
        char bytes[1 << 16];
        const ssize_t got = recv(client.get(), bytes, sizeof bytes, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno == ECONNRESET)) return text;
        if (got > 0) text.append(bytes, static_cast<size_t>(got));
        if (got < 0 && text.empty() && tries > 3) return "open";
    }
    return text;
}

MetricsServer new_server() {
    auto server = MetricsServer::create("127.0.0.1:0");
    REQUIRE(server);
    return std::move(*server);
}

constexpr const char* request = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

}  // namespace

TEST_CASE("whoever asks for metrics gets the text, also later and in pieces") {
    MetricsServer server = new_server();
    uint64_t asked = 0;
    server.on_asked([&](uint64_t id) { asked = id; });
    const Fd client = connected_to(server);
    say(client, "GET /met");
    serve(server);
    CHECK(asked == 0);
    say(client, "rics HTTP/1.1\r\n\r\n");
    serve(server);
    REQUIRE(asked != 0);
    CHECK(server.is_busy());
    std::string text;  // more than a socket takes at once
    for (int i = 0; i < 1'000'000; i++) text += "gpr_x 1\n";
    server.answer(asked, text);
    const std::string heard = heard_by(client, server);
    CHECK(heard.starts_with("HTTP/1.1 200 OK\r\n"));
    CHECK(heard.find(fmt::format("Content-Length: {}\r\n", text.size())) != std::string::npos);
    CHECK(heard.size() > text.size());
    CHECK(!server.is_busy());
}

TEST_CASE("other paths and methods are not found, and what is no request is dropped") {
    MetricsServer server = new_server();
    server.on_asked([&](uint64_t id) { server.answer(id, "gpr_x 1\n"); });
    for (const char* other : {"GET / HTTP/1.1\r\n\r\n", "GET /metricsx HTTP/1.1\r\n\r\n",
                              "POST /metrics HTTP/1.1\r\n\r\n", "nonsense\r\n\r\n"}) {
        const Fd client = connected_to(server);
        say(client, other);
        CHECK(heard_by(client, server).starts_with("HTTP/1.1 404 Not Found\r\n"));
    }
    const Fd client = connected_to(server);
    say(client, std::string(9000, 'x'));
    CHECK(heard_by(client, server).empty());
    CHECK(!server.is_busy());
}

TEST_CASE("silent clients make room for others, and are dropped in time") {
    MetricsServer server = new_server();
    server.on_asked([&](uint64_t id) { server.answer(id, "gpr_x 1\n"); });
    std::vector<Fd> silent;
    for (int i = 0; i < 40; i++) {
        silent.push_back(connected_to(server));
        serve(server);
    }
    const Fd client = connected_to(server);
    say(client, request);
    CHECK(heard_by(client, server).ends_with("gpr_x 1\n"));
    CHECK(heard_by(silent.front(), server).empty());
    CHECK(heard_by(silent.back(), server) == "open");
    CHECK(server.is_busy());
    server.expire();
    CHECK(server.is_busy());  // not yet
}

TEST_CASE("an answer to a client that has gone is nobody's") {
    MetricsServer server = new_server();
    uint64_t asked = 0;
    server.on_asked([&](uint64_t id) { asked = id; });
    Fd client = connected_to(server);
    say(client, request);
    serve(server);
    REQUIRE(asked != 0);
    client.reset();
    serve(server);
    server.answer(asked, "gpr_x 1\n");
    server.answer(asked + 1, "gpr_x 1\n");
    serve(server);
    CHECK(!server.is_busy());
}

TEST_CASE("an address that cannot be had is named") {
    MetricsServer server = new_server();
    const auto second = MetricsServer::create(server.address());
    REQUIRE(!second);
    CHECK(second.error().message().find(server.address()) != std::string::npos);
    CHECK(!MetricsServer::create("not an address:x"));
}
