#include "acceptor/box/host_network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>

namespace gpr {
namespace {

constexpr const char* loopback = "lo";
// Any address will do: pasta answers for every address of the session's link.
constexpr const char* any_neighbour = "fe80::1";

std::string read_text(const char* path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::optional<HostAddress> address_of(const ifaddrs& entry) {
    if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return std::nullopt;
    const int family = entry.ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) return std::nullopt;
    HostAddress address{entry.ifa_name, family == AF_INET6, {}, 0};
    const auto bytes_in = [&](const sockaddr* socket_address) {
        return address.is_ipv6
                   ? reinterpret_cast<const sockaddr_in6*>(socket_address)->sin6_addr.s6_addr
                   : reinterpret_cast<const uint8_t*>(
                         &reinterpret_cast<const sockaddr_in*>(socket_address)->sin_addr);
    };
    const size_t size = address.is_ipv6 ? 16 : 4;
    std::copy_n(bytes_in(entry.ifa_addr), size, address.bytes.begin());
    if (entry.ifa_netmask != nullptr) {
        const uint8_t* mask = bytes_in(entry.ifa_netmask);
        for (size_t i = 0; i < size; ++i) {
            address.prefix += static_cast<unsigned>(std::popcount(mask[i]));
        }
    }
    return address;
}

uint32_t number_of(const HostAddress& address) {
    uint32_t number = 0;
    for (size_t i = 0; i < 4; ++i) number = number << 8 | address.bytes[i];
    return number;
}

// Another address on the same link, as next hop: pasta answers for all of them.
std::string neighbour_of(HostAddress address) {
    const uint32_t own = number_of(address);
    uint32_t other = own ^ 1;
    if (address.prefix < 31) {
        const uint32_t first = (own & ~(~uint32_t{0} >> address.prefix)) + 1;
        other = first == own ? first + 1 : first;
    }
    for (size_t i = 0; i < 4; ++i) address.bytes[i] = static_cast<uint8_t>(other >> (24 - 8 * i));
    return address.text();
}

bool is_for_all(const HostAddress& address) {
    return address.interface != loopback && !address.is_for_links_only();
}

}  // namespace

std::string HostAddress::text() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(is_ipv6 ? AF_INET6 : AF_INET, bytes.data(), text.data(), text.size());
    return text.data();
}

bool HostAddress::is_for_links_only() const {
    return is_ipv6 && bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

Result<HostNetwork> look_at_host_network() {
    ifaddrs* list = nullptr;
    GPR_CHECK(from_libc(getifaddrs(&list), "list this host's addresses"));
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(list, freeifaddrs);
    HostNetwork host;
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
        if (auto address = address_of(*entry)) host.addresses.push_back(std::move(*address));
    }
    host.way_out_ipv4 = way_out_ipv4(read_text("/proc/self/net/route"));
    host.way_out_ipv6 = way_out_ipv6(read_text("/proc/self/net/ipv6_route"));
    return host;
}

std::string way_out_ipv4(const std::string& routes) {
    std::istringstream lines(routes);
    std::string line;
    std::getline(lines, line);  // skip the header
    while (std::getline(lines, line)) {
        std::istringstream words(line);
        std::string interface, destination, gateway, skipped, mask;
        unsigned flags = 0;
        words >> interface >> destination >> gateway >> std::hex >> flags;
        words >> skipped >> skipped >> skipped >> mask;
        constexpr const char* everywhere = "00000000";
        if (destination == everywhere && mask == everywhere && (flags & RTF_GATEWAY) != 0) {
            return interface;
        }
    }
    return {};
}

std::string way_out_ipv6(const std::string& routes) {
    std::istringstream lines(routes);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string destination, prefix, skipped, flags_text, interface;
        words >> destination >> prefix >> skipped >> skipped >> skipped;
        words >> skipped >> skipped >> skipped >> flags_text >> interface;
        unsigned flags = 0;
        std::from_chars(flags_text.data(), flags_text.data() + flags_text.size(), flags, 16);
        if (prefix == "00" && (flags & RTF_GATEWAY) != 0 && (flags & RTF_REJECT) == 0) {
            return interface;
        }
    }
    return {};
}

Result<ConnectorPlan> plan_connector(const HostNetwork& host) {
    if (!host.way_out_ipv4.empty()) return ConnectorPlan{host.way_out_ipv4, {}};
    if (!host.way_out_ipv6.empty()) return ConnectorPlan{host.way_out_ipv6, {}};
    // A host without a router still has neighbours.
    const auto first = std::ranges::find_if(host.addresses, is_for_all);
    if (first == host.addresses.end()) {
        return fail(
            "the acceptor's host has no network to share: no interface but the loopback "
            "has an address");
    }
    ConnectorPlan plan{first->interface, {"-i", first->interface}};
    bool has_ipv4 = false, has_ipv6 = false;
    for (const HostAddress& address : host.addresses) {
        bool& has_one = address.is_ipv6 ? has_ipv6 : has_ipv4;
        if (has_one || address.interface != first->interface || !is_for_all(address)) continue;
        has_one = true;
        plan.options.insert(plan.options.end(), {"-a", address.text()});
        if (!address.is_ipv6) {
            plan.options.insert(plan.options.end(), {"-n", std::to_string(address.prefix)});
        }
        plan.options.insert(plan.options.end(),
                            {"-g", address.is_ipv6 ? any_neighbour : neighbour_of(address)});
    }
    return plan;
}

}  // namespace gpr
