#include "acceptor/daemon/admission.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>

namespace gpr {

std::string origin_of(const std::string& peer) {
    const auto colon = peer.rfind(':');
    if (colon == std::string::npos || peer.starts_with("unix")) return "";
    std::string host = peer.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    // The scope of a link-local address must not distinguish peers.
    std::array<uint8_t, 16> bytes{};
    if (inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), bytes.data()) != 1) return host;
    if (IN6_IS_ADDR_V4MAPPED(reinterpret_cast<const in6_addr*>(bytes.data()))) {
        return fmt::format("{}.{}.{}.{}", bytes[12], bytes[13], bytes[14], bytes[15]);
    }
    std::string prefix;
    for (size_t i = 0; i < 8; ++i) prefix += fmt::format("{:02x}", bytes[i]);
    return prefix + "::/64";
}

// A stranger older than the grace makes room for a new one, so that an address shared by many is
// not blocked by some who only hold connections open.
Admission::Verdict Admission::judge(const std::string& peer, Time now) const {
    const auto origin = origin_of(peer);
    if (!origin.empty() && strangers_from(origin) >= limits_.strangers_per_address) {
        const Entry* oldest = oldest_from(origin);
        if (may_go(*oldest, now)) return {"", oldest->first};
        return {fmt::format("{} connections of {} have not proven a token yet",
                            limits_.strangers_per_address, origin),
                {}};
    }
    if (strangers() < limits_.strangers) return {};
    const Entry* oldest = oldest_of_most_frequent_origin();
    if (may_go(*oldest, now)) return {"", oldest->first};
    return {fmt::format("{} connections have not proven a token yet", limits_.strangers), {}};
}

bool Admission::may_go(const Entry& entry, Time now) const {
    return now - entry.second.since >= limits_.stranger_grace;
}

void Admission::came(pid_t worker, const std::string& peer, Time now) {
    strangers_[worker] = {origin_of(peer), now};
}

bool Admission::prove(pid_t worker) {
    const auto found = strangers_.find(worker);
    if (found == strangers_.end() || sessions() >= limits_.sessions) return false;
    sessions_.emplace(worker, found->second.origin);
    strangers_.erase(found);
    return true;
}

void Admission::left(pid_t worker) {
    strangers_.erase(worker);
    sessions_.erase(worker);
}

std::optional<pid_t> Admission::overdue(Time now) const {
    for (const auto& [worker, stranger] : strangers_) {
        if (now - stranger.since > limits_.stranger_lifetime) return worker;
    }
    return {};
}

unsigned Admission::strangers_from(const std::string& origin) const {
    unsigned count = 0;
    for (const auto& [worker, stranger] : strangers_) count += stranger.origin == origin ? 1 : 0;
    return count;
}

const Admission::Entry* Admission::oldest_from(const std::string& origin) const {
    const Entry* oldest = nullptr;
    for (const auto& entry : strangers_) {
        if (entry.second.origin != origin) continue;
        if (!oldest || entry.second.since < oldest->second.since) oldest = &entry;
    }
    return oldest;
}

const Admission::Entry* Admission::oldest_of_most_frequent_origin() const {
    std::map<std::string, unsigned> counts;
    for (const auto& [worker, stranger] : strangers_) ++counts[stranger.origin];
    const Entry* chosen = nullptr;
    for (const auto& entry : strangers_) {
        const auto& candidate = entry.second;
        if (!chosen || counts[candidate.origin] > counts[chosen->second.origin] ||
            (counts[candidate.origin] == counts[chosen->second.origin] &&
             candidate.since < chosen->second.since)) {
            chosen = &entry;
        }
    }
    return chosen;
}

}  // namespace gpr
