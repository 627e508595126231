// Who may come in: pure bookkeeping, so that strangers cannot keep those who hold a token out.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace gpr {

struct AdmissionLimits {
    unsigned sessions = 64;               // with a proven token
    unsigned strangers = 64;              // connections that have not proven one yet
    unsigned strangers_per_address = 16;  // of one IPv4 address or IPv6 /64; unix peers have none
    std::chrono::milliseconds stranger_lifetime{10'000};
    // What a peer with a token may need, at the end of a long line: before that none has to go for
    // another.
    std::chrono::milliseconds stranger_grace{2'000};
};

class Admission {
public:
    using Time = std::chrono::steady_clock::time_point;

    explicit Admission(const AdmissionLimits& limits) : limits_(limits) {}

    struct Verdict {
        std::string refusal;         // empty: come in
        std::optional<pid_t> evict;  // the stranger that has to go for it
    };
    // `peer` as Listener::accept names it.
    [[nodiscard]] Verdict judge(const std::string& peer, Time now) const;

    void came(pid_t worker, const std::string& peer, Time now);
    // It has proven a token. False: there are as many sessions as there may be.
    [[nodiscard]] bool prove(pid_t worker);
    void left(pid_t worker);

    // Strangers that should have been done long ago.
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
    std::map<pid_t, std::string> sessions_;  // peers
};

// What shares a limit: "10.0.0.7", the first half of an IPv6 address, or "" for unix peers.
std::string origin_of(const std::string& peer);

}  // namespace gpr
