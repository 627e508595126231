// Where `gpr view` may listen: on this host alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpr {

struct ViewAddress {
    std::string host = "127.0.0.1";  // numeric, of the loopback, without brackets
    uint16_t port = 0;               // 0: one that is free

    // As in a URL: "127.0.0.1:8080", "[::1]:8080".
    [[nodiscard]] std::string text() const;
};

// HOST[:PORT] as a user writes it: 127.0.0.1, localhost:8080, [::1]:8080. An error if other hosts
// could reach it.
Result<ViewAddress> parse_view_address(const std::string& text);

// Whether a request came by a name of the loopback, according to its Host header. A name that a
// foreign DNS server resolves to 127.0.0.1 is none, so that no page of the web can ask.
bool names_view(std::string_view host_header, const ViewAddress& address);

}  // namespace gpr
