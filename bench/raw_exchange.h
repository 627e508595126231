// What raw_client tells raw_server once a connection, in clear, before TLS begins.
#pragma once

#include <cstdint>

namespace bench {

struct RawExchange {
    uint32_t request_bytes;
    uint32_t response_bytes;
    uint8_t tls;
    uint8_t spin;
    uint8_t unused[2];
};

}  // namespace bench
