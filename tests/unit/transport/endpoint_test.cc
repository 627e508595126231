#include "transport/endpoint.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cstring>

using namespace gpr;
using namespace std::chrono_literals;

namespace {
Deadline soon() { return std::chrono::steady_clock::now() + 5s; }

std::string unix_path(const char* name) {
    return "/tmp/gpr-endpoint-test-" + std::to_string(::getpid()) + "-" + name;
}

void check_round_trip(const Endpoint& where) {
    auto listeners = Listener::listen(where);
    REQUIRE(listeners);
    const Listener& listener = listeners->front();
    auto client = connect_endpoint(listener.endpoint(), soon());
    REQUIRE(client);
    pollfd waiting{listener.fd(), POLLIN, 0};
    ::poll(&waiting, 1, 5000);
    auto accepted = listener.accept();
    REQUIRE(accepted);
    CHECK_FALSE(accepted->peer.empty());
    CHECK(::send(client->get(), "x", 1, 0) == 1);
    pollfd readable{accepted->fd.get(), POLLIN, 0};
    CHECK(::poll(&readable, 1, 5000) == 1);
    CHECK(listener.accept().error().code == EAGAIN);
}
}  // namespace

TEST_CASE("addresses as users write them") {
    auto tcp = [](const char* text, const char* host, int port) {
        auto endpoint = parse_endpoint(text);
        CAPTURE(text);
        REQUIRE(endpoint);
        CHECK(endpoint->kind == Endpoint::Kind::tcp);
        CHECK(endpoint->host == host);
        CHECK(endpoint->port == port);
        CHECK_FALSE(endpoint->plain);
        CHECK(parse_endpoint(endpoint->text()) == *endpoint);
    };
    tcp("gpu.lab:99", "gpu.lab", 99);
    tcp("gpu", "gpu", 7711);
    tcp("10.0.0.7:7711", "10.0.0.7", 7711);
    tcp("[::1]:5", "::1", 5);
    tcp("[fe80::1%eth0]", "fe80::1%eth0", 7711);
    CHECK(parse_endpoint("*:80")->host == "");
    CHECK(parse_endpoint(":80")->text() == ":80");
    CHECK_FALSE(connect_endpoint(*parse_endpoint(":80"), soon()));
    CHECK(parse_endpoint("unix:/run/g.sock")->path == "/run/g.sock");
    CHECK(parse_endpoint("unix:///run/g.sock")->text() == "unix:/run/g.sock");
    CHECK(parse_endpoint("unix:/run/g.sock")->plain);
    CHECK(parse_endpoint("tcp://h:1", true)->plain);
    CHECK(parse_endpoint("tcp://h:1", true)->text() == "tcp://h:1");
}

TEST_CASE("what is not an address is refused by name") {
    for (std::string text : {"", "h:", "h:x", "h:65536", "h:-1", "::1", "[::1", "[::1]x", "a b:1",
                             "unix:relative", "unix:", "ftp://h", "tcp://h:1", "ssh://h"}) {
        CAPTURE(text);
        auto endpoint = parse_endpoint(text);
        REQUIRE_FALSE(endpoint);
        CHECK(endpoint.error().what.find(text) != std::string::npos);
    }
    CHECK(parse_endpoint("unix:/" + std::string(200, 'x')).error().code == ENAMETOOLONG);
    CHECK(parse_endpoint("tcp://h:1").error().what.find("TLS") != std::string::npos);
    CHECK(parse_endpoint("ssh://h").error().what.find("not supported yet") != std::string::npos);
}

TEST_CASE("connecting over IPv4, IPv6 and unix sockets") {
    check_round_trip(*parse_endpoint("127.0.0.1:0"));
    check_round_trip(*parse_endpoint("[::1]:0"));
    check_round_trip(*parse_endpoint("unix:" + unix_path("round")));
}

TEST_CASE("listening on all addresses covers both families") {
    auto listeners = Listener::listen(*parse_endpoint("*:0"));
    REQUIRE(listeners);
    CHECK(listeners->size() >= 1);
}

TEST_CASE("a refused connection names the acceptor") {
    Endpoint closed;
    {
        auto listeners = Listener::listen(*parse_endpoint("127.0.0.1:0"));
        closed = listeners->front().endpoint();
    }
    auto socket = connect_endpoint(closed, soon());
    REQUIRE_FALSE(socket);
    CHECK(socket.error().code == ECONNREFUSED);
    CHECK(socket.error().what == "cannot reach acceptor " + closed.text());
}

TEST_CASE("a full listener is given up at the deadline") {
    auto path = unix_path("full");
    Fd raw(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, path.c_str());
    REQUIRE(::bind(raw.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(::listen(raw.get(), 0) == 0);
    auto where = *parse_endpoint("unix:" + path);
    std::vector<Fd> waiting;
    for (int i = 0; i < 8; ++i) {
        auto socket = connect_endpoint(where, std::chrono::steady_clock::now() + 50ms);
        if (!socket) {
            CHECK(socket.error().code == ETIMEDOUT);
            ::unlink(path.c_str());
            return;
        }
        waiting.push_back(std::move(*socket));
    }
    ::unlink(path.c_str());
    FAIL("the listener's queue never filled");
}

TEST_CASE("unix listeners: stale paths are replaced, living ones and files are not") {
    auto path = unix_path("stale");
    auto where = *parse_endpoint("unix:" + path);
    {
        auto first = Listener::listen(where);
        REQUIRE(first);
        CHECK(Listener::listen(where).error().code == EADDRINUSE);
        // A forked worker's copy must not take the path away.
        pid_t child = ::fork();
        if (child == 0) {
            first->clear();
            ::_exit(0);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        CHECK(::access(path.c_str(), F_OK) == 0);
    }
    CHECK(::access(path.c_str(), F_OK) != 0);
    {
        Fd dead(::socket(AF_UNIX, SOCK_STREAM, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        strcpy(address.sun_path, path.c_str());
        REQUIRE(::bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    }
    CHECK(Listener::listen(where));
    Fd file(::open(path.c_str(), O_CREAT | O_WRONLY, 0600));
    CHECK(Listener::listen(where).error().code == EEXIST);
    CHECK(::access(path.c_str(), F_OK) == 0);
    ::unlink(path.c_str());
}
