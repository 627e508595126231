// Foreign bytes: whatever arrives, parsing says no or gives a call that is safe to place.
#include <doctest/doctest.h>
#include <rapidcheck.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <cstring>

#include "syscall/marshal.h"
#include "test_memory.h"

namespace gpr {
namespace {

constexpr Address data{0x10000};

// Calls with every kind of piece: nested, valued, shared, counted.
std::vector<MarshalledCall> sample_calls() {
    TestMemory memory;
    memory.map(data, 16 * page_size);
    uint64_t at = data.value;
    memory.put(data, std::array<uint64_t, 7>{at + 0x200, 64, at + 0x100, 2, at + 0x300, 48, 0});
    memory.put(data + 0x100, std::array<uint64_t, 4>{at + 0x1000, 8, at + 0x2000, 5000});
    memory.put(data + 0x500, uint32_t{16});
    memory.put(data + 0x600, std::array<uint64_t, 3>{at + 0x700, at + 0x700, 0});
    memory.write(data + 0x700, "text");
    memory.put(data + 0x800, std::array<uint64_t, 2>{at + 0x900, 8});
    std::vector<std::pair<uint32_t, SyscallArguments>> sources{
        {SYS_recvmsg, {3, at, 0}},
        {SYS_sendmsg, {3, at, 0}},
        {SYS_readv, {3, at + 0x100, 2}},
        {SYS_getsockname, {3, at + 0x400, at + 0x500}},
        {SYS_execve, {at + 0x700, at + 0x600, at + 0x600}},
        {SYS_pselect6, {64, at, at, 0, at, at + 0x800}},
        {SYS_epoll_wait, {3, at, 10, 0}},
        {SYS_getpid, {}},
    };
    std::vector<MarshalledCall> calls;
    for (const auto& [number, args] : sources) {
        auto outcome = marshal(number, args, memory);
        REQUIRE(std::holds_alternative<MarshalledCall>(outcome));
        calls.push_back(std::get<MarshalledCall>(outcome));
    }
    return calls;
}

// AddressSanitizer, where it is on, judges the memory accesses; the limits are judged here.
void use(const MarshalledCall& call, long result) {
    RC_ASSERT(call.bounce_size <= bounce_limit);
    std::vector<std::byte> area(call.bounce_size);
    place(call, {0x7000'0000}, {area.data(), area.size()});
    auto out = gather(call, result, {area.data(), area.size()});
    RC_ASSERT(out.size() <= call.bounce_size + 8 * call.pieces.size());
    auto scattered = scatter(call, out);
    RC_ASSERT(scattered.has_value());
}

MarshalledCall without_addresses(MarshalledCall call) {
    for (Piece& piece : call.pieces) piece.program = {};
    return call;
}

TEST_CASE("what is serialised parses to the same") {
    for (const MarshalledCall& call : sample_calls()) {
        auto parsed = parse_call(serialise_call(call));
        REQUIRE(parsed);
        CHECK(*parsed == without_addresses(call));
    }
}

TEST_CASE("every cut of a serialised call is refused") {
    for (const MarshalledCall& call : sample_calls()) {
        auto bytes = serialise_call(call);
        for (size_t length = 0; length < bytes.size(); ++length) {
            if (parse_call(std::span(bytes).first(length))) FAIL_CHECK("cut to " << length);
        }
        bytes.push_back({});
        CHECK_FALSE(parse_call(bytes));
    }
}

// One fault each, everything else right.
TEST_CASE("each rule of a well-formed call is checked") {
    MarshalledCall good;
    good.number = SYS_read;
    good.bounce_size = 64;
    good.pieces.resize(3);
    Piece &outer = good.pieces[0], &inner = good.pieces[1], &sized = good.pieces[2];
    outer.capacity = outer.in_length = 16;
    inner.offset = 16;
    inner.capacity = 16;
    inner.parent = 0;
    inner.slot = 8;
    sized.offset = 32;
    sized.capacity = 32;
    sized.slot = 1;
    sized.returned = Returned::valued;
    sized.length_piece = 0;
    sized.length_at = 12;
    good.in_bytes.resize(16);
    REQUIRE(parse_call(serialise_call(good)));

    using Fault = void (*)(MarshalledCall&);
    const std::pair<const char*, Fault> faults[] = {
        {"unknown call", [](MarshalledCall& c) { c.number = 400; }},
        {"area too large", [](MarshalledCall& c) { c.bounce_size = bounce_limit + 1; }},
        {"area too small", [](MarshalledCall& c) { c.bounce_size = 63; }},
        {"overlap", [](MarshalledCall& c) { c.pieces[1].offset = 15; }},
        {"wrapping end", [](MarshalledCall& c) { c.pieces[2].capacity = 0xfffffff0; }},
        {"more input than capacity",
         [](MarshalledCall& c) { c.pieces[0].in_length = 17, c.in_bytes.resize(17); }},
        {"no such argument", [](MarshalledCall& c) { c.pieces[2].slot = 6; }},
        {"its own parent", [](MarshalledCall& c) { c.pieces[0].parent = 0; }},
        {"parent after child", [](MarshalledCall& c) { c.pieces[1].parent = 2; }},
        {"pointer past its parent", [](MarshalledCall& c) { c.pieces[1].slot = 9; }},
        {"wrapping pointer", [](MarshalledCall& c) { c.pieces[1].slot = 0xfffffffc; }},
        {"no such length", [](MarshalledCall& c) { c.pieces[2].length_piece = 3; }},
        {"length past its piece", [](MarshalledCall& c) { c.pieces[2].length_at = 13; }},
        {"no length named", [](MarshalledCall& c) { c.pieces[2].length_piece = no_piece; }},
        {"needless length", [](MarshalledCall& c) { c.pieces[0].length_piece = 1; }},
        {"unknown return", [](MarshalledCall& c) { c.pieces[0].returned = Returned{9}; }},
        {"missing input", [](MarshalledCall& c) { c.in_bytes.pop_back(); }},
        {"surplus input", [](MarshalledCall& c) { c.in_bytes.emplace_back(); }},
    };
    for (const auto& [what, fault] : faults) {
        MarshalledCall bad = good;
        fault(bad);
        auto parsed = parse_call(serialise_call(bad));
        CHECK_MESSAGE(!parsed, what);
        if (!parsed) CHECK(parsed.error().code == EPROTO);
    }
}

TEST_CASE("each rule of a well-formed result is checked") {
    TestMemory memory;
    memory.map(data, page_size);
    memory.write(data, "/");
    auto outcome = marshal(SYS_stat, {data.value, data.value + 0x100}, memory);
    const auto& call = std::get<MarshalledCall>(outcome);
    REQUIRE(call.pieces.size() == 2);
    auto result = [](std::vector<std::pair<uint32_t, uint32_t>> pieces) {
        std::vector<std::byte> bytes;
        for (auto [index, length] : pieces) {
            uint32_t head[2]{index, length};
            auto raw = std::as_bytes(std::span(head));
            bytes.insert(bytes.end(), raw.begin(), raw.end());
            bytes.resize(bytes.size() + length);
        }
        return bytes;
    };
    CHECK(scatter(call, result({{1, 144}})));
    CHECK(scatter(call, result({})));
    CHECK_FALSE(scatter(call, result({{1, 145}})));        // more than it holds
    CHECK_FALSE(scatter(call, result({{0, 2}})));          // input only
    CHECK_FALSE(scatter(call, result({{2, 1}})));          // no such piece
    CHECK_FALSE(scatter(call, result({{1, 4}, {1, 4}})));  // twice
    auto cut = result({{1, 144}});
    cut.pop_back();
    CHECK_FALSE(scatter(call, cut));
    cut.resize(7);
    CHECK_FALSE(scatter(call, cut));
}

TEST_CASE("random bytes never parse to something unsafe") {
    CHECK(rc::check([](const std::vector<uint8_t>& bytes) {
        auto parsed = parse_call(std::as_bytes(std::span(bytes)));
        if (parsed) use(*parsed, 100);
    }));
}

TEST_CASE("calls with altered words are refused or safe") {
    auto calls = sample_calls();
    int accepted = 0, refused = 0;
    bool held = rc::check([&] {
        auto bytes = serialise_call(*rc::gen::elementOf(calls));
        int alterations = *rc::gen::inRange(1, 4);
        for (int i = 0; i < alterations; ++i) {
            size_t at = *rc::gen::inRange<size_t>(0, bytes.size() - 3);
            auto value = *rc::gen::oneOf(
                rc::gen::arbitrary<uint32_t>(),
                rc::gen::element<uint32_t>(0, 1, 2, 3, 4, 8, 16, 56, 64, 0xffff, 0x10000,
                                           0x7fffffff, 0xfffffff8, 0xffffffff));
            std::memcpy(bytes.data() + at, &value, sizeof value);
        }
        auto parsed = parse_call(bytes);
        (parsed ? accepted : refused) += 1;
        if (parsed) use(*parsed, *rc::gen::element<long>(0, 1, 13, 100000, -EINTR, -EFAULT));
    });
    CHECK(held);
    // Otherwise this test would not reach what it is for.
    CHECK(accepted > 0);
    CHECK(refused > 0);
}

TEST_CASE("altered results are refused or stay inside the buffers that were sent") {
    auto calls = sample_calls();
    CHECK(rc::check([&] {
        auto call = *rc::gen::elementOf(calls);
        std::vector<std::byte> area(call.bounce_size, std::byte{0x55});
        place(call, {0x7000'0000}, {area.data(), area.size()});
        if (call.bounce_size > 60) area[call.bounce_size / 2] ^= std::byte{1};
        auto out = gather(call, *rc::gen::inRange(0l, 200l), {area.data(), area.size()});
        if (!out.empty()) {
            int alterations = *rc::gen::inRange(0, 3);
            for (int i = 0; i < alterations; ++i) {
                size_t at = *rc::gen::inRange<size_t>(0, out.size());
                out[at] = static_cast<std::byte>(*rc::gen::arbitrary<uint8_t>());
            }
        }
        auto scattered = scatter(call, out);
        if (!scattered) return;
        for (const MemoryWrite& w : scattered->writes) {
            bool inside = false;
            for (const Piece& p : call.pieces) {
                inside |= p.returned != Returned::nothing && w.to >= p.program &&
                          w.to + w.bytes.size() <= p.program + p.capacity;
            }
            RC_ASSERT(inside);
        }
    }));
}

TEST_CASE("random result bytes are refused or stay inside") {
    auto calls = sample_calls();
    CHECK(rc::check([&](const std::vector<uint8_t>& bytes) {
        for (const auto& call : calls) {
            auto scattered = scatter(call, std::as_bytes(std::span(bytes)));
            if (bytes.empty()) RC_ASSERT(scattered.has_value());
        }
    }));
}

}  // namespace
}  // namespace gpr
