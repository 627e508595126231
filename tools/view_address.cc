#include "tools/view_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace gpr {

namespace {

bool is_loopback(const std::string& host) {
    in_addr four{};
    in6_addr six{};
    if (inet_pton(AF_INET, host.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

// The host without brackets, and what follows it: nothing, or a colon and the port.
std::pair<std::string, std::string> parts_of(const std::string& text) {
    const size_t end = std::min(text.find(']'), text.size());
    if (text.starts_with('[') && end < text.size()) {
        return {text.substr(1, end - 1), text.substr(end + 1)};
    }
    const bool is_bare_v6 = std::ranges::count(text, ':') > 1;
    const size_t colon = is_bare_v6 ? text.size() : std::min(text.find(':'), text.size());
    return {text.substr(0, colon), text.substr(colon)};
}

std::optional<uint16_t> port_of(const std::string& text) {
    if (text.empty()) return 0;
    uint16_t port = 0;
    const char* end = text.data() + text.size();
    const auto [read, error] = std::from_chars(text.data() + 1, end, port);
    if (text[0] != ':' || error != std::errc{} || read != end) return std::nullopt;
    return port;
}

}  // namespace

std::string ViewAddress::text() const {
    const bool is_v6 = host.find(':') != std::string::npos;
    return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
}

Result<ViewAddress> parse_view_address(const std::string& text) {
    auto [host, rest] = parts_of(text);
    if (host == "localhost") host = "127.0.0.1";
    if (!is_loopback(host)) {
        return fail(fmt::format(
            "'{}' is no address of this host alone, and who sees the page sees into the program; "
            "listen on 127.0.0.1, and look from elsewhere by 'ssh -L PORT:127.0.0.1:PORT'",
            text));
    }
    const auto port = port_of(rest);
    if (!port) {
        return fail(
            fmt::format("'{}' has no port after its host; write 127.0.0.1:8080, or "
                        "127.0.0.1 for a port that is free",
                        text));
    }
    return ViewAddress{host, *port};
}

bool names_view(std::string_view host_header, const ViewAddress& address) {
    if (host_header == address.text()) return true;
    constexpr std::array names{"127.0.0.1", "localhost", "[::1]"};
    return std::ranges::any_of(names, [&](const char* name) {
        return host_header == fmt::format("{}:{}", name, address.port);
    });
}

}  // namespace gpr
