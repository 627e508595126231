// Helpers for tests that speak frames as bytes.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "transport/frame_encoder.h"
#include "transport/frame_receiver.h"

namespace gpr::test {

using Bytes = std::vector<std::byte>;

inline Bytes join(const std::vector<iovec>& parts) {
    Bytes out;
    for (const iovec& part : parts) {
        const auto* data = static_cast<const std::byte*>(part.iov_base);
        out.insert(out.end(), data, data + part.iov_len);
    }
    return out;
}

inline std::vector<Bytes> encode_pieces(FrameBuilder& frame, Priority priority) {
    FrameEncoder encoder;
    GPR_ASSERT(encoder.start(frame, priority).has_value());
    std::vector<Bytes> pieces;
    while (encoder.next()) {
        pieces.push_back(join(encoder.parts()));
        GPR_ASSERT(pieces.back().size() == encoder.size());
    }
    return pieces;
}

inline Bytes encode(FrameBuilder& frame, Priority priority = Priority::urgent) {
    Bytes all;
    for (const Bytes& piece : encode_pieces(frame, priority)) {
        all.insert(all.end(), piece.begin(), piece.end());
    }
    return all;
}

inline Bytes echo_frame(uint64_t id, Priority priority = Priority::urgent, size_t raw_bytes = 0) {
    FrameBuilder frame;
    frame.session().initEcho().setId(id);
    Bytes raw(raw_bytes, std::byte{0x5a});
    frame.add_raw(raw);
    return encode(frame, priority);
}

struct Decoded {
    std::vector<ReceivedFrame> frames;
    std::string error;  // empty: none
};

// Feeds in chunks whose sizes chunk_size() gives.
template <class ChunkSize>
Decoded decode(FrameReceiver& receiver, const Bytes& bytes, ChunkSize chunk_size) {
    Decoded result;
    size_t given = 0;
    do {
        auto space = receiver.space();
        size_t n =
            std::min({space.size(), bytes.size() - given, std::max<size_t>(chunk_size(), 1)});
        if (n > 0) memcpy(space.data(), bytes.data() + given, n);
        receiver.received(n);
        given += n;
        for (;;) {
            auto frame = receiver.next();
            if (!frame) {
                result.error = frame.error().what;
                return result;
            }
            if (!*frame) break;
            result.frames.push_back(std::move(**frame));
        }
    } while (given < bytes.size());
    return result;
}

inline Decoded decode(const Bytes& bytes) {
    FrameReceiver receiver{FrameLimits{}};
    return decode(receiver, bytes, [] { return size_t{1} << 20; });
}

}  // namespace gpr::test
