#include "transport/endpoint.h"

#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <memory>

#include "transport/byte_stream.h"

namespace gpr {

namespace {

using std::chrono::steady_clock;

struct AddressesDeleter {
    void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, AddressesDeleter>;

Result<Addresses> resolve(const Endpoint& endpoint, int flags) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    addrinfo* list = nullptr;
    auto port = std::to_string(endpoint.port);
    int rc = ::getaddrinfo(endpoint.host.empty() ? nullptr : endpoint.host.c_str(), port.c_str(),
                           &hints, &list);
    if (rc == EAI_SYSTEM) return fail(errno, fmt::format("cannot look up {}", endpoint.host));
    if (rc != 0) return fail(fmt::format("cannot look up {}: {}", endpoint.host, gai_strerror(rc)));
    return Addresses(list);
}

Result<sockaddr_un> unix_address(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) {
        return fail(ENAMETOOLONG, fmt::format("unix:{}", path));
    }
    memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

Result<Fd> connect_address(int family, const sockaddr* address, socklen_t length,
                           Deadline deadline) {
    Fd socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket) return fail(errno, "cannot make a socket");
    // EAGAIN from a unix socket: the listener's queue is full; try until the deadline.
    while (::connect(socket.get(), address, length) != 0) {
        if (errno == EINPROGRESS) {
            GPR_CHECK(wait_for_socket(socket.get(), POLLOUT, deadline));
            int error = 0;
            socklen_t size = sizeof(error);
            ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
            if (error != 0) return fail(error, "connect");
            break;
        }
        if (errno != EAGAIN && errno != EINTR) return fail(errno, "connect");
        if (steady_clock::now() >= deadline) return fail(ETIMEDOUT, "connect");
        ::usleep(10'000);
    }
    tune_socket(socket.get());
    return socket;
}

Endpoint name_of(const sockaddr_storage& address) {
    Endpoint endpoint;
    char text[INET6_ADDRSTRLEN + IF_NAMESIZE + 2] = "";
    ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), sizeof(address), text, sizeof(text),
                  nullptr, 0, NI_NUMERICHOST);
    endpoint.host = text;
    endpoint.port = ntohs(address.ss_family == AF_INET6
                              ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                              : reinterpret_cast<const sockaddr_in&>(address).sin_port);
    return endpoint;
}

Result<uint16_t> parse_port(std::string_view text, std::string_view whole) {
    unsigned port = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (error != std::errc{} || end != text.data() + text.size() || port > 65'535) {
        return fail(fmt::format("'{}' is not an address: bad port '{}'", whole, text));
    }
    return static_cast<uint16_t>(port);
}

Result<Endpoint> parse_host_port(std::string_view text) {
    Endpoint endpoint;
    std::string_view rest;
    auto malformed = [&](const char* why) {
        return fail(
            fmt::format("'{}' is not an address ({}); write HOST:PORT, [V6]:PORT or "
                        "unix:/PATH",
                        text, why));
    };
    if (text.starts_with('[')) {
        size_t close = text.find(']');
        if (close == std::string_view::npos) return malformed("no ]");
        endpoint.host = text.substr(1, close - 1);
        rest = text.substr(close + 1);
    } else {
        size_t colon = text.find(':');
        if (colon != std::string_view::npos &&
            text.find(':', colon + 1) != std::string_view::npos) {
            return malformed("IPv6 addresses need [ ]");
        }
        endpoint.host = text.substr(0, colon);
        rest = colon == std::string_view::npos ? "" : text.substr(colon);
    }
    if (endpoint.host.find_first_of(" \t/@") != std::string::npos) return malformed("bad host");
    if (endpoint.host == "*") endpoint.host.clear();
    if (rest.empty()) {
        if (text.empty()) return malformed("it is empty");
        return endpoint;
    }
    if (rest[0] != ':') return malformed("no : before the port");
    GPR_TRY(endpoint.port, parse_port(rest.substr(1), text));
    return endpoint;
}

}  // namespace

std::string Endpoint::text() const {
    if (kind == Kind::unix_socket) return "unix:" + path;
    bool v6 = host.find(':') != std::string::npos;
    std::string address =
        v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
    return plain ? "tcp://" + address : address;
}

Result<Endpoint> parse_endpoint(std::string_view text, bool plain_allowed) {
    if (text.starts_with("ssh://")) {
        return fail(
            fmt::format("'{}': ssh:// is not supported yet; run 'ssh -L' or give HOST:PORT", text));
    }
    for (std::string_view scheme : {"unix://", "unix:"}) {
        if (!text.starts_with(scheme)) continue;
        Endpoint endpoint;
        endpoint.kind = Endpoint::Kind::unix_socket;
        endpoint.plain = true;
        endpoint.port = 0;
        endpoint.path = text.substr(scheme.size());
        if (endpoint.path.empty() || endpoint.path[0] != '/') {
            return fail(fmt::format("'{}': a unix socket needs an absolute path", text));
        }
        GPR_CHECK(unix_address(endpoint.path));
        return endpoint;
    }
    if (text.starts_with("tcp://")) {
        std::string_view rest = text.substr(6);
        if (!plain_allowed) {
            return fail(
                fmt::format("'{}' is plain TCP, which anyone on the way can read and "
                            "change; add --plain to allow it, or write '{}' for TLS",
                            text, rest));
        }
        GPR_TRY(Endpoint endpoint, parse_host_port(rest));
        endpoint.plain = true;
        return endpoint;
    }
    if (size_t scheme = text.find("://"); scheme != std::string_view::npos) {
        return fail(
            fmt::format("'{}': unknown kind of address '{}'", text, text.substr(0, scheme + 3)));
    }
    return parse_host_port(text);
}

Result<Fd> connect_endpoint(const Endpoint& endpoint, Deadline deadline) {
    auto failed = [&](const Error& why) {
        return fail(why.code, fmt::format("cannot reach acceptor {}", endpoint.text()));
    };
    if (endpoint.kind == Endpoint::Kind::unix_socket) {
        GPR_TRY(auto address, unix_address(endpoint.path));
        auto socket = connect_address(AF_UNIX, reinterpret_cast<const sockaddr*>(&address),
                                      sizeof(address), deadline);
        if (!socket) return failed(socket.error());
        return socket;
    }
    if (endpoint.host.empty()) {
        return fail(fmt::format("'{}' names no host to connect to", endpoint.text()));
    }
    GPR_TRY(auto addresses, resolve(endpoint, 0));
    size_t left = 0;
    for (auto* a = addresses.get(); a; a = a->ai_next) ++left;
    Error last{EADDRNOTAVAIL, ""};
    for (auto* a = addresses.get(); a; a = a->ai_next, --left) {
        // A dead address must not use up the time of the addresses after it.
        auto now = steady_clock::now();
        auto share = now + (deadline - now) / static_cast<long>(left);
        auto socket = connect_address(a->ai_family, a->ai_addr, a->ai_addrlen, share);
        if (socket) return socket;
        last = socket.error();
    }
    return failed(last);
}

Listener::Listener(Fd fd, Endpoint endpoint)
    : fd_(std::move(fd)), endpoint_(std::move(endpoint)), owner_pid_(::getpid()) {}

Listener::Listener(Listener&& o) noexcept
    : fd_(std::move(o.fd_)), endpoint_(std::move(o.endpoint_)), owner_pid_(o.owner_pid_) {}

Listener& Listener::operator=(Listener&& o) noexcept {
    remove_path();
    fd_ = std::move(o.fd_);
    endpoint_ = std::move(o.endpoint_);
    owner_pid_ = o.owner_pid_;
    return *this;
}

Listener::~Listener() { remove_path(); }

void Listener::remove_path() {
    bool ours = fd_ && owner_pid_ == ::getpid();  // not in a forked worker
    if (ours && endpoint_.kind == Endpoint::Kind::unix_socket) ::unlink(endpoint_.path.c_str());
}

Result<Listener> Listener::listen_unix(const Endpoint& endpoint) {
    GPR_TRY(auto address, unix_address(endpoint.path));
    const auto* raw = reinterpret_cast<const sockaddr*>(&address);
    Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket) return fail(errno, "cannot make a socket");
    struct stat status {};
    if (::lstat(endpoint.path.c_str(), &status) == 0) {
        if (!S_ISSOCK(status.st_mode)) {
            return fail(EEXIST, fmt::format("cannot listen on {}", endpoint.text()));
        }
        Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        // Only a socket that refuses connections is left over from a dead process.
        if (::connect(probe.get(), raw, sizeof(address)) == 0 || errno != ECONNREFUSED) {
            return fail(EADDRINUSE, fmt::format("cannot listen on {}", endpoint.text()));
        }
        ::unlink(endpoint.path.c_str());
    }
    if (::bind(socket.get(), raw, sizeof(address)) != 0 || ::listen(socket.get(), SOMAXCONN) != 0) {
        return fail(errno, fmt::format("cannot listen on {}", endpoint.text()));
    }
    return Listener(std::move(socket), endpoint);
}

Result<std::vector<Listener>> Listener::listen(const Endpoint& endpoint) {
    std::vector<Listener> listeners;
    if (endpoint.kind == Endpoint::Kind::unix_socket) {
        GPR_TRY(auto listener, listen_unix(endpoint));
        listeners.push_back(std::move(listener));
        return listeners;
    }
    GPR_TRY(auto addresses, resolve(endpoint, AI_PASSIVE));
    Error last{EADDRNOTAVAIL, ""};
    for (auto* a = addresses.get(); a; a = a->ai_next) {
        Fd socket(::socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        int on = 1;
        if (!socket) {
            last = {errno, ""};
            continue;  // a kernel without IPv6
        }
        ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (a->ai_family == AF_INET6) {
            ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
        }
        if (::bind(socket.get(), a->ai_addr, a->ai_addrlen) != 0 ||
            ::listen(socket.get(), SOMAXCONN) != 0) {
            last = {errno, ""};
            if (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL) continue;
            return fail(errno, fmt::format("cannot listen on {}", endpoint.text()));
        }
        sockaddr_storage bound{};
        socklen_t length = sizeof(bound);
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &length);
        Endpoint where = name_of(bound);
        where.plain = endpoint.plain;
        listeners.push_back(Listener(std::move(socket), std::move(where)));
    }
    if (listeners.empty())
        return fail(last.code, fmt::format("cannot listen on {}", endpoint.text()));
    return listeners;
}

Result<Listener::Accepted> Listener::accept() const {
    sockaddr_storage address{};
    socklen_t length = sizeof(address);
    Fd socket(::accept4(fd_.get(), reinterpret_cast<sockaddr*>(&address), &length,
                        SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
        // accept(2): errors that the new connection already has are reported here, too.
        bool gone = errno == ECONNABORTED || errno == EINTR || errno == EPROTO ||
                    errno == ENETDOWN || errno == EHOSTUNREACH || errno == ENETUNREACH;
        return fail(gone ? EAGAIN : errno, fmt::format("accept on {}", endpoint_.text()));
    }
    tune_socket(socket.get());
    if (endpoint_.kind == Endpoint::Kind::unix_socket) {
        ucred peer{};
        socklen_t size = sizeof(peer);
        ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
        return Accepted{std::move(socket), fmt::format("pid {} of uid {}", peer.pid, peer.uid)};
    }
    return Accepted{std::move(socket), name_of(address).text()};
}

}  // namespace gpr
