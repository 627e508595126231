#include "acceptor/box/session_ports.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

namespace gpr {
namespace {

constexpr unsigned first_for_all = 1024, last_port = 65535;
// The kernel chooses among a session's ports for sockets that do not ask for one.
constexpr unsigned least_share = 8;

bool parse_port(const std::string& text, unsigned& number) {
    const auto end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, number);
    return parsed.ec == std::errc() && parsed.ptr == end;
}

}  // namespace

std::string PortRange::text() const { return fmt::format("{}-{}", first, first + count - 1); }

Result<PortRange> parse_port_range(const std::string& text) {
    const auto dash = text.find('-');
    unsigned first = 0, last = 0;
    const bool good = dash != std::string::npos && parse_port(text.substr(0, dash), first) &&
                      parse_port(text.substr(dash + 1), last) && first >= first_for_all &&
                      last >= first && last <= last_port;
    if (!good) {
        return fail(
            fmt::format("--session-ports wants FIRST-LAST from {} on, such as "
                        "20000-26399; not '{}'",
                        first_for_all, text));
    }
    return PortRange{static_cast<uint16_t>(first), static_cast<uint16_t>(last - first + 1)};
}

Result<uint16_t> share_of_ports(const PortRange& all, unsigned sessions) {
    const unsigned share = all.none() || sessions == 0 ? 0 : all.count / sessions;
    if (share >= least_share) return static_cast<uint16_t>(share);
    return fail(
        fmt::format("--session-ports {} has {} ports for each of {} sessions; at least {} "
                    "are needed: give more of them, or a lower --max-sessions",
                    all.text(), share, sessions, least_share));
}

// Takes a lock of as many bytes, which ends with the last copy of its descriptor.
Result<SessionPorts> SessionPorts::take(const PortRange& all, uint16_t share,
                                        const std::string& list) {
    SessionPorts ports;
    if (all.none()) return ports;
    ports.lock_ = Fd(open(list.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!ports.lock_) return fail(errno, fmt::format("open {}, where sessions lock ports", list));
    for (unsigned at = all.first; at + share <= unsigned{all.first} + all.count; at += share) {
        struct flock lock {};
        lock.l_type = F_WRLCK;
        lock.l_whence = SEEK_SET;
        lock.l_start = at;
        lock.l_len = share;
        if (fcntl(ports.lock_.get(), F_OFD_SETLK, &lock) == 0) {
            ports.range_ = {static_cast<uint16_t>(at), share};
            return ports;
        }
        if (errno != EAGAIN && errno != EACCES) return fail(errno, "lock ports in " + list);
    }
    return fail(
        fmt::format("all ports for sessions ({}) are taken; give the acceptor more with "
                    "--session-ports",
                    all.text()));
}

}  // namespace gpr
