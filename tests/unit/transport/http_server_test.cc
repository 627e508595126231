#include "transport/http_server.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>

using namespace gpr;

namespace {

Fd connected_to(const HttpServer& server) {
    auto fd = connect_endpoint(server.endpoint(),
                               std::chrono::steady_clock::now() + std::chrono::seconds(5));
    REQUIRE(fd);
    return std::move(*fd);
}

void say(const Fd& client, const std::string& text) {
    REQUIRE(send(client.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(text.size()));
}

// Serves whatever waits, until nothing does for 20 ms.
void serve(HttpServer& server, const HttpServer::Asked& asked) {
    pollfd events{server.fd(), POLLIN, 0};
    while (poll(&events, 1, 20) > 0) server.serve(asked);
}

}  // namespace

TEST_CASE("a request is parsed as far as it matters") {
    const auto request =
        HttpRequest::parse("GET /a/b?pid=12&known=&x=1 HTTP/1.1\r\nhOst:  a:1 \r\nX: y\r\nHost: b");
    CHECK(request.method == "GET");
    CHECK(request.path() == "/a/b");
    CHECK(request.parameter("pid") == "12");
    CHECK(request.parameter("known").empty());
    CHECK(request.parameter("x") == "1");
    CHECK(request.parameter("id").empty());
    CHECK(request.hosts == std::vector<std::string>{"a:1", "b"});
    CHECK(!request.has_body);
    CHECK(HttpRequest::parse("POST / HTTP/1.0\r\ncontent-LENGTH: 3").has_body);
    for (const char* none : {"", "GET", "GET /", "GET / HTTP/2", "\r\nHost: a", "GET  HTTP/1.1"}) {
        CHECK(HttpRequest::parse(none).target.empty());
    }
    CHECK(HttpRequest::parse("GET /a HTTP/1.1").parameter("a").empty());
}

TEST_CASE("whoever sends more than a request gets its answer, and is left") {
    auto server = HttpServer::create("127.0.0.1:0", 4);
    REQUIRE(server);
    const auto asked = [&](uint64_t id, const HttpRequest& request) {
        server->answer(id, {"200 OK", "text/plain", request.method, "X: y\r\n"});
        server->answer(id, {"200 OK", "text/plain", "twice", ""});
    };
    Fd client = connected_to(*server);
    say(client, "POST / HTTP/1.1\r\nContent-Length: 9000\r\n\r\n" + std::string(3000, 'x'));
    serve(*server, asked);
    CHECK(server->is_busy());  // it may have more to say
    say(client, std::string(6000, 'x'));
    serve(*server, asked);
    std::string heard(4096, '\0');
    heard.resize(static_cast<size_t>(
        std::max<ssize_t>(0, recv(client.get(), heard.data(), heard.size(), 0))));
    CHECK(heard.starts_with("HTTP/1.1 200 OK\r\nX: y\r\n"));
    CHECK(heard.ends_with("\r\n\r\nPOST"));
    char more = 0;
    CHECK(recv(client.get(), &more, 1, 0) == 0);
    client.reset();
    serve(*server, asked);
    CHECK(!server->is_busy());
}

TEST_CASE("HEAD is answered without a body") {
    auto server = HttpServer::create("127.0.0.1:0", 4);
    REQUIRE(server);
    const Fd client = connected_to(*server);
    say(client, "HEAD / HTTP/1.1\r\n\r\n");
    serve(*server, [&](uint64_t id, const HttpRequest&) {
        server->answer(id, {"405 Method Not Allowed", "text/plain", "text", ""});
    });
    std::string heard(4096, '\0');
    heard.resize(static_cast<size_t>(
        std::max<ssize_t>(0, recv(client.get(), heard.data(), heard.size(), 0))));
    CHECK(heard.find("Content-Length: 4\r\n") != std::string::npos);
    CHECK(heard.ends_with("\r\n\r\n"));
}
