#include "transport/send_queue.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "test_frames.h"

using namespace gpr;
using namespace gpr::test;

namespace {
void push(SendQueue& queue, Priority priority, const Bytes& bytes, size_t sent = 0) {
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    queue.push(priority, {&part, 1}, sent);
}
}  // namespace

TEST_CASE("urgent pieces pass bulk, and a piece under way is finished first") {
    SendQueue queue;
    std::vector<iovec> parts;
    push(queue, Priority::bulk, Bytes(100, std::byte{'b'}), 40);
    push(queue, Priority::bulk, Bytes(10, std::byte{'c'}));
    push(queue, Priority::urgent, Bytes(5, std::byte{'u'}));
    CHECK(queue.bytes() == 75);
    queue.gather(parts);
    auto all = join(parts);
    CHECK(all.size() == 75);
    CHECK(all[59] == std::byte{'b'});
    CHECK(all[60] == std::byte{'u'});
    CHECK(all[65] == std::byte{'c'});
    queue.consume(67);
    push(queue, Priority::urgent, Bytes(5, std::byte{'v'}));
    queue.gather(parts);
    all = join(parts);
    CHECK(all[0] == std::byte{'c'});
    CHECK(all[8] == std::byte{'v'});
    queue.consume(13);
    CHECK(queue.empty());
    CHECK(queue.bytes() == 0);
}

TEST_CASE("one write takes about one piece of bulk") {
    SendQueue queue;
    std::vector<iovec> parts;
    for (int i = 0; i < 8; ++i) push(queue, Priority::bulk, Bytes(bulk_piece_bytes + 40));
    queue.gather(parts);
    CHECK(join(parts).size() == bulk_piece_bytes + 40);
}

TEST_CASE("whatever the socket takes, pieces stay whole and in their order") {
    CHECK(rc::check([] {
        SendQueue queue;
        std::vector<iovec> parts;
        uint64_t next_id = 0;
        Bytes wire;
        std::array<std::vector<uint64_t>, 2> pushed;
        auto steps = *rc::gen::inRange(1, 60);
        auto write = [&](size_t most) {
            queue.gather(parts);
            auto all = join(parts);
            size_t n = std::min(all.size(), most);
            wire.insert(wire.end(), all.begin(), all.begin() + static_cast<long>(n));
            queue.consume(n);
        };
        for (int i = 0; i < steps; ++i) {
            if (*rc::gen::arbitrary<bool>()) {
                auto priority = *rc::gen::element(Priority::urgent, Priority::bulk);
                pushed[static_cast<size_t>(priority)].push_back(next_id);
                push(queue, priority, echo_frame(next_id++, priority, *rc::gen::inRange(0, 300)));
            } else {
                write(*rc::gen::inRange<size_t>(0, 900));
            }
        }
        while (!queue.empty()) write(1000);
        auto got = decode(wire);
        RC_ASSERT(got.error.empty());
        std::array<std::vector<uint64_t>, 2> arrived;
        for (const auto& frame : got.frames) {
            arrived[static_cast<size_t>(frame.priority())].push_back(
                frame.session().getEcho().getId());
        }
        RC_ASSERT(arrived == pushed);
        RC_ASSERT(queue.bytes() == 0u);
    }));
}
