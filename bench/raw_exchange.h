// What raw_client and memory_client tell raw_server once a connection, in clear, before TLS begins.
#pragma once

#include <cstdint>

namespace bench {

struct RawExchange {
    uint32_t request_bytes;
    uint32_t response_bytes;
    uint8_t tls;
    uint8_t spin;
    uint8_t memory;  // each request is a RawMemory, and the response as many bytes of memory
    uint8_t unused;
};

struct RawMemory {
    uint64_t bytes;
};

}  // namespace bench
