// Which connections are admitted: pure bookkeeping that keeps strangers from blocking peers with a
// token.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace gpr {

struct AdmissionLimits {
    unsigned sessions = 64;   // connections that have proven a token
    unsigned strangers = 64;  // connections that have not proven one yet
    // Of one IPv4 address or IPv6 /64; unix peers are not limited.
    unsigned strangers_per_address = 16;
    std::chrono::milliseconds stranger_lifetime{10'000};
    // How long a peer with a token may need to prove it over a slow link; a stranger is not evicted
    // before that.
    std::chrono::milliseconds stranger_grace{2'000};
};

class Admission {
public:
    using Time = std::chrono::steady_clock::time_point;

    explicit Admission(const AdmissionLimits& limits) : limits_(limits) {}

    struct Verdict {
        std::string refusal;         // empty: admitted
        std::optional<pid_t> evict;  // a stranger to drop to make room
    };
    // peer: as Listener::accept names it.
    [[nodiscard]] Verdict judge(const std::string& peer, Time now) const;

    void came(pid_t worker, const std::string& peer, Time now);
    // The peer has proven a token. False if there are as many sessions as allowed.
    [[nodiscard]] bool prove(pid_t worker);
    void left(pid_t worker);

    // A stranger that has taken longer than its lifetime.
    [[nodiscard]] std::optional<pid_t> overdue(Time now) const;
    [[nodiscard]] unsigned strangers() const { return static_cast<unsigned>(strangers_.size()); }
    [[nodiscard]] unsigned sessions() const { return static_cast<unsigned>(sessions_.size()); }

private:
    struct Stranger {
        std::string origin;
        Time since;
    };
    using Entry = std::pair<const pid_t, Stranger>;
    [[nodiscard]] const Entry* oldest_of_most_frequent_origin() const;
    [[nodiscard]] const Entry* oldest_from(const std::string& origin) const;
    [[nodiscard]] bool may_go(const Entry& entry, Time now) const;
    [[nodiscard]] unsigned strangers_from(const std::string& origin) const;

    AdmissionLimits limits_;
    std::map<pid_t, Stranger> strangers_;
    std::map<pid_t, std::string> sessions_;  // the peers' origins
};

// What shares a limit: "10.0.0.7", the first half of an IPv6 address, or "" for unix peers.
std::string origin_of(const std::string& peer);

}  // namespace gpr
