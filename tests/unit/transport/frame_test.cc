#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <numeric>

#include "test_frames.h"

using namespace gpr;
using namespace gpr::test;

namespace {

struct Sent {
    uint64_t id;
    std::string text;
    Priority priority;
    Bytes raw;
};

Sent any_frame() {
    Sent sent;
    sent.id = *rc::gen::arbitrary<uint64_t>();
    // Long enough to need several segments at times.
    sent.text = std::string(*rc::gen::inRange<size_t>(0, 9'000), 'x');
    sent.priority = *rc::gen::element(Priority::urgent, Priority::bulk);
    size_t raw = *rc::gen::weightedOneOf<size_t>(
        {{3, rc::gen::inRange<size_t>(0, 20)},
         {2, rc::gen::element<size_t>(4096, 8192, 65'536)},
         {1, rc::gen::inRange<size_t>(bulk_piece_bytes - 3, 3 * bulk_piece_bytes)}});
    sent.raw.resize(raw);
    for (size_t i = 0; i < raw; ++i) sent.raw[i] = static_cast<std::byte>(i * 31 + sent.id);
    return sent;
}

std::vector<Bytes> pieces_of(const Sent& sent) {
    FrameBuilder frame;
    auto bye = frame.message().initBye();
    bye.setReason(sent.text);
    size_t half = sent.raw.size() / 2;
    std::span<const std::byte> raw(sent.raw);
    frame.add_raw(raw.first(half));
    frame.add_raw(raw.subspan(half));
    return encode_pieces(frame, sent.priority);
}

bool same(const Sent& sent, const ReceivedFrame& got) {
    return got.priority() == sent.priority && got.message().isBye() &&
           sent.text == got.message().getBye().getReason().cStr() &&
           std::equal(got.raw().begin(), got.raw().end(), sent.raw.begin(), sent.raw.end());
}

// Touches everything a handler could.
void walk(const ReceivedFrame& frame) {
    auto text = kj::str(frame.message());
    GPR_ASSERT(text.size() > 0);
}

Bytes hello_bytes() {
    FrameBuilder frame;
    auto hello = frame.message().initHello();
    hello.setProtocolVersion(1);
    hello.setSoftware("gpr");
    auto host = hello.initHost();
    auto features = host.initFeatures(3);
    for (unsigned i = 0; i < 3; ++i) features.set(i, "feature");
    auto leaves = host.initCpu().initLeaves(4);
    leaves[2].setEax(7);
    return encode(frame);
}

}  // namespace

TEST_CASE("frames survive any cutting of the stream") {
    CHECK(rc::check([] {
        auto count = *rc::gen::inRange<size_t>(1, 8);
        std::vector<Sent> sent;
        Bytes wire;
        for (size_t i = 0; i < count; ++i) {
            sent.push_back(any_frame());
            for (const Bytes& piece : pieces_of(sent.back())) {
                wire.insert(wire.end(), piece.begin(), piece.end());
            }
        }
        FrameReceiver receiver{FrameLimits{}};
        uint64_t seed = *rc::gen::arbitrary<uint64_t>();
        auto got = decode(receiver, wire, [&] {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            return (seed >> 33) % 70'000;
        });
        RC_ASSERT(got.error.empty());
        RC_ASSERT(got.frames.size() == sent.size());
        for (size_t i = 0; i < sent.size(); ++i) RC_ASSERT(same(sent[i], got.frames[i]));
        RC_ASSERT(receiver.pending() == 0u);
    }));
}

TEST_CASE("urgent frames may pass between the pieces of a bulk frame") {
    FrameBuilder bulk;
    Bytes raw(5 * bulk_piece_bytes + 17);
    for (size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<std::byte>(i / 7);
    bulk.session().initEcho().setId(1);
    bulk.add_raw(raw);
    auto pieces = encode_pieces(bulk, Priority::bulk);
    REQUIRE(pieces.size() == 6);
    Bytes wire;
    for (const Bytes& piece : pieces) {
        wire.insert(wire.end(), piece.begin(), piece.end());
        auto urgent = echo_frame(2);
        wire.insert(wire.end(), urgent.begin(), urgent.end());
    }
    auto got = decode(wire);
    REQUIRE(got.error == "");
    REQUIRE(got.frames.size() == 7);
    for (size_t i = 0; i < 5; ++i) CHECK(got.frames[i].session().getEcho().getId() == 2);
    CHECK(got.frames[5].session().getEcho().getId() == 1);
    CHECK(
        std::equal(raw.begin(), raw.end(), got.frames[5].raw().begin(), got.frames[5].raw().end()));
}

TEST_CASE("a builder can be reused") {
    FrameBuilder frame;
    for (uint64_t i = 0; i < 100; ++i) {
        frame.restart();
        frame.message().initBye().setReason(std::string(i * 40, 'y'));
        auto got = decode(encode(frame));
        REQUIRE(got.frames.size() == 1);
        CHECK(got.frames[0].message().getBye().getReason().size() == i * 40);
        CHECK(got.frames[0].raw().empty());
        frame.restart();
        CHECK(decode(encode(frame)).frames[0].message().isSession());
    }
}

TEST_CASE("received frames stay valid while later ones arrive") {
    FrameReceiver receiver{FrameLimits{}};
    std::vector<ReceivedFrame> kept;
    for (uint64_t i = 0; i < 600; ++i) {
        auto got = decode(receiver, echo_frame(i, Priority::bulk, 4096), [] { return 3000; });
        REQUIRE(got.frames.size() == 1);
        kept.push_back(std::move(got.frames[0]));
    }
    for (uint64_t i = 0; i < kept.size(); ++i) {
        CHECK(kept[i].session().getEcho().getId() == i);
        CHECK(kept[i].raw().size() == 4096);
        CHECK(kept[i].raw()[4095] == std::byte{0x5a});
    }
}

TEST_CASE("a truncated frame is waited for, not delivered") {
    auto wire = hello_bytes();
    for (size_t size = 0; size < wire.size(); ++size) {
        auto got = decode(Bytes(wire.begin(), wire.begin() + static_cast<long>(size)));
        REQUIRE(got.frames.empty());
        REQUIRE(got.error.empty());
    }
    CHECK(decode(wire).frames.size() == 1);
}

TEST_CASE("garbage is recognised by its first byte") {
    CHECK(decode(Bytes{std::byte{'S'}}).error == "not a gpr frame");
    CHECK(decode(Bytes(100, std::byte{0})).error == "not a gpr frame");
}

TEST_CASE("every header field is checked") {
    auto with = [](auto change, FrameLimits limits = {}) {
        auto wire = echo_frame(1, Priority::bulk, 24);
        FrameHeader header;
        memcpy(&header, wire.data(), sizeof(header));
        change(header);
        memcpy(wire.data(), &header, sizeof(header));
        FrameReceiver receiver{limits};
        return decode(receiver, wire, [] { return 4096; }).error;
    };
    CHECK(with([](FrameHeader&) {}) == "");
    CHECK(with([](FrameHeader& h) { h.priority = 2; }) == "unknown priority");
    CHECK(with([](FrameHeader& h) { h.reserved[1] = 1; }) == "reserved header bytes in use");
    CHECK(with([](FrameHeader& h) { h.message_words = max_message_bytes / 8 + 1; }) ==
          "message too long");
    CHECK(with([](FrameHeader& h) { h.raw_total = max_raw_bytes + 1; }) == "too many raw bytes");
    CHECK(with([](FrameHeader& h) { h.raw_bytes = 25; }) == "raw bytes out of bounds");
    CHECK(with([](FrameHeader& h) { h.raw_offset = 8; }) == "raw bytes out of bounds");
    CHECK(with([](FrameHeader& h) { h.raw_offset = UINT32_MAX; }) == "raw bytes out of bounds");
    CHECK(with([](FrameHeader& h) { h.message_words = 0; }) == "frame without a message");
    CHECK(with([](FrameHeader& h) { h.raw_total = 32, h.priority = 0; }) == "urgent frame cut");
    CHECK(with([](FrameHeader& h) { h.raw_bytes = 0; }) == "empty piece");
    CHECK(with([](FrameHeader& h) { h.raw_offset = 8, h.raw_total = 32; }) == "piece of no frame");
    CHECK(with([](FrameHeader& h) { h.message_words -= 1; }) != "");
    CHECK(with([](FrameHeader&) {}, handshake_limits) == "too many raw bytes");
}

TEST_CASE("pieces must fit their frame") {
    FrameBuilder bulk;
    Bytes raw(2 * bulk_piece_bytes + 8);
    bulk.session().initEcho().setId(1);
    bulk.add_raw(raw);
    auto pieces = encode_pieces(bulk, Priority::bulk);
    REQUIRE(pieces.size() == 3);
    auto order = [&](std::vector<size_t> which, auto change) {
        Bytes wire;
        for (size_t i : which) {
            Bytes piece = pieces[i];
            FrameHeader header;
            memcpy(&header, piece.data(), sizeof(header));
            if (i > 0) change(header);
            memcpy(piece.data(), &header, sizeof(header));
            wire.insert(wire.end(), piece.begin(), piece.end());
        }
        return decode(wire).error;
    };
    auto same_header = [](FrameHeader&) {};
    CHECK(order({0, 1, 2}, same_header) == "");
    CHECK(order({0, 2}, same_header) == "piece does not fit its frame");
    CHECK(order({0, 0}, same_header) == "frame begun inside another");
    CHECK(order({0, 1, 2, 2}, same_header) == "piece of no frame");
    CHECK(order({0, 1}, [](FrameHeader& h) { h.raw_total += 1; }) ==
          "piece does not fit its frame");
    CHECK(order({0, 1}, [](FrameHeader& h) { h.priority = 0; }) == "piece does not fit its frame");
}

TEST_CASE("padding must be zero") {
    auto wire = echo_frame(1, Priority::urgent, 5);
    wire.back() = std::byte{1};
    CHECK(decode(wire).error == "padding is not zero");
}

TEST_CASE("no mutation of a message gets past the check and throws behind it") {
    auto original = hello_bytes();
    uint64_t state = 42;
    auto random = [&](size_t below) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (state >> 33) % below;
    };
    size_t delivered = 0;
    size_t refused = 0;
    for (int round = 0; round < 50'000; ++round) {
        auto wire = original;
        for (size_t n = 1 + random(3); n > 0; --n) {
            size_t at = sizeof(FrameHeader) + random(wire.size() - sizeof(FrameHeader));
            wire[at] = random(2) == 0 ? static_cast<std::byte>(random(256))
                                      : wire[at] ^ static_cast<std::byte>(1u << random(8));
        }
        auto got = decode(wire);
        for (const auto& frame : got.frames) walk(frame);
        delivered += got.frames.size();
        refused += got.error.empty() ? 0 : 1;
    }
    CHECK(delivered > 1000);
    CHECK(refused > 1000);
}

TEST_CASE("many pointers to one object are refused") {
    // One segment, so that every pointer is a near one.
    capnp::MallocMessageBuilder message(100'000);
    auto features = message.initRoot<wire::Frame>().initHello().initHost().initFeatures(4000);
    features.set(0, std::string(60'000, 'z'));
    auto flat = capnp::messageToFlatArray(message);
    FrameHeader header{frame_magic, static_cast<uint32_t>(flat.size()), 0, 0, 0, 0, {}};
    Bytes wire(sizeof(header) + flat.size() * 8);
    memcpy(wire.data(), &header, sizeof(header));
    memcpy(wire.data() + sizeof(header), flat.begin(), flat.size() * 8);
    CHECK(decode(wire).frames.size() == 1);
    // Where the list of pointers lies: its first word is the only one that says "60,001 bytes".
    auto* words = reinterpret_cast<uint64_t*>(wire.data());
    size_t count = wire.size() / 8;
    size_t first = 0;
    for (size_t i = 0; i < count; ++i) {
        if (words[i] >> 32 == (60'001u << 3 | 2)) first = i;
    }
    REQUIRE(first != 0);
    for (size_t i = 1; i < 4000; ++i) words[first + i] = words[first] - (i << 2);
    CHECK(decode(wire).error == "malformed message");
}

TEST_CASE("what is too long to send is refused before it leaves") {
    FrameEncoder encoder;
    FrameBuilder frame;
    frame.message().initBye().setReason(std::string(max_message_bytes, 'x'));
    CHECK_FALSE(encoder.start(frame, Priority::urgent));
    frame.restart();
    frame.session().setNothing();
    Bytes raw(max_raw_bytes);
    frame.add_raw(raw);
    CHECK(encoder.start(frame, Priority::urgent));
    frame.add_raw(std::span(raw).first(1));
    CHECK_FALSE(encoder.start(frame, Priority::urgent));
}
