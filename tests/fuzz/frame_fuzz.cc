// Any bytes, cut anywhere, give frames whose every field can be read, or one error.
#include <kj/string.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "fuzz.h"
#include "transport/frame_encoder.h"
#include "transport/frame_receiver.h"
#include "transport/host.h"

namespace gpr::fuzz {

namespace {

uint64_t delivered = 0;
uint64_t refused = 0;

Bytes encode(FrameBuilder& frame, Priority priority) {
    FrameEncoder encoder;
    if (!encoder.start(frame, priority)) abort();
    Bytes bytes;
    while (encoder.next()) {
        for (const iovec& part : encoder.parts()) {
            const auto* data = static_cast<const uint8_t*>(part.iov_base);
            bytes.insert(bytes.end(), data, data + part.iov_len);
        }
    }
    return bytes;
}

}  // namespace

std::vector<Bytes> seeds() {
    std::vector<Bytes> all;
    FrameBuilder frame;
    frame.session().initEcho().setId(7);
    std::vector<std::byte> raw(133, std::byte{3});
    frame.add_raw(raw);
    all.push_back(encode(frame, Priority::urgent));

    frame.restart();
    auto hello = frame.message().initHello();
    hello.setSoftware("gpr");
    auto host = describe_this_host();
    host.features = {"a", "bc"};
    host.devices = {"/dev/kvm"};
    write_host(host, hello.initHost());
    all.push_back(encode(frame, Priority::urgent));

    frame.restart();
    frame.message().initBye().setReason("over");
    all.push_back(encode(frame, Priority::bulk));

    frame.restart();
    frame.message().initChallenge().setNonce(
        kj::arrayPtr(reinterpret_cast<const kj::byte*>("n"), 1));
    all.push_back(encode(frame, Priority::urgent));

    frame.restart();
    std::vector<std::byte> long_raw(bulk_piece_bytes + 100, std::byte{9});
    frame.session().initEcho();
    frame.add_raw(long_raw);
    all.push_back(encode(frame, Priority::bulk));
    return all;
}

void one_input(std::span<const uint8_t> input) {
    FrameReceiver receiver{FrameLimits{}};
    size_t chunk = 1 + (input.size() * 7919) % 5000;  // some cutting that depends on the input
    for (size_t given = 0; given < input.size();) {
        auto space = receiver.space();
        size_t n = std::min({chunk, space.size(), input.size() - given});
        memcpy(space.data(), input.data() + given, n);
        receiver.received(n);
        given += n;
        for (;;) {
            auto frame = receiver.next();
            if (!frame) {
                ++refused;
                return;
            }
            if (!*frame) break;
            ++delivered;
            // Reads every field the schema knows; an exception here ends the program.
            auto text = kj::str((*frame)->message());
            uint8_t sum = 0;
            for (std::byte b : (*frame)->raw()) sum ^= static_cast<uint8_t>(b);
            static volatile uint8_t sink;
            sink = sum ^ static_cast<uint8_t>(text.size());
            (void)sink;
        }
    }
}

bool summarize(std::string& line) {
    line = std::to_string(delivered) + " frames delivered, " + std::to_string(refused) +
           " inputs refused";
    return delivered > 100 && refused > 100;
}

}  // namespace gpr::fuzz
