// Where an acceptor listens: addresses as users write them, connecting, and listening.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace gpr {

inline constexpr uint16_t default_port = 7711;
inline constexpr std::chrono::milliseconds default_connect_timeout{5000};

using Deadline = std::chrono::steady_clock::time_point;

struct Endpoint {
    enum class Kind { tcp, unix_socket };

    Kind kind = Kind::tcp;
    std::string host;  // name or numeric address, without brackets; empty: all addresses (listen)
    uint16_t port = default_port;
    std::string path;    // unix socket
    bool plain = false;  // no TLS: unix sockets, and TCP if the user said so

    bool operator==(const Endpoint&) const = default;
    // As the user would write it: "10.0.0.7:7711", "[::1]:7711", "unix:/run/gpr.sock".
    [[nodiscard]] std::string text() const;
};

// Parses host, host:port, [v6]:port, unix:/path; "*:port" and ":port" for listening on all
// addresses; tcp://host:port (no TLS) only if plain_allowed.
Result<Endpoint> parse_endpoint(std::string_view text, bool plain_allowed = false);

// Tries every address of the name until the deadline. The socket is non-blocking.
Result<Fd> connect_endpoint(const Endpoint& endpoint, Deadline deadline);

// A listening socket. The destructor removes the path of a unix socket, in the process that made
// it.
class Listener {
public:
    // Returns one for each address of the name. Port 0 takes a free port, see endpoint().
    static Result<std::vector<Listener>> listen(const Endpoint& endpoint);

    Listener(Listener&&) noexcept;
    Listener& operator=(Listener&&) noexcept;
    ~Listener();

    [[nodiscard]] int fd() const { return fd_.get(); }
    // Where it really listens, with the port that was chosen.
    [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }

    struct Accepted {
        Fd fd;  // non-blocking
        std::string peer;
    };
    // EAGAIN if no connection waits, or if the peer has already gone.
    [[nodiscard]] Result<Accepted> accept() const;

private:
    Listener(Fd fd, Endpoint endpoint);
    static Result<Listener> listen_unix(const Endpoint& endpoint);
    void remove_path();

    Fd fd_;
    Endpoint endpoint_;
    int owner_pid_ = 0;
};

}  // namespace gpr
