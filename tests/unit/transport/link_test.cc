#include "transport/link.h"

#include <doctest/doctest.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "test_frames.h"
#include "test_session.h"
#include "transport/loop.h"
#include "transport/stream_link.h"

using namespace gpr;
using namespace gpr::test;
using namespace std::chrono_literals;

namespace {

// Both ends in one loop. A watchdog ends a test that would hang.
struct Ends {
    std::unique_ptr<Loop> loop;
    std::unique_ptr<Link> initiator;
    std::unique_ptr<Link> acceptor;
    int initiator_fd = -1;
    int acceptor_fd = -1;
    std::string initiator_closed;
    std::string acceptor_closed;
    bool timed_out = false;

    explicit Ends(Wire wire) {
        auto outcome = shake_hands(wire);
        loop = std::move(*Loop::create());
        initiator_fd = outcome.initiator->stream->fd();
        acceptor_fd = outcome.acceptor->stream->fd();
        initiator = make_link(*loop, std::move(*outcome.initiator));
        acceptor = make_link(*loop, std::move(*outcome.acceptor));
        initiator->on_closed([this](const Error& e) { initiator_closed = e.message(); });
        acceptor->on_closed([this](const Error& e) { acceptor_closed = e.message(); });
        loop->after(20s, [this] {
            timed_out = true;
            loop->stop();
        });
    }
    void run() {
        loop->run();
        REQUIRE_FALSE(timed_out);
    }
    // Until the condition holds; looked at whenever the loop has nothing else to do.
    template <class Condition>
    void run_until(Condition condition) {
        loop->before_sleep([&, this] {
            if (condition()) loop->stop();
        });
        run();
    }
};

void send_echo(Link& link, uint64_t id, Priority priority, const Bytes& raw = {}) {
    FrameBuilder frame;
    frame.session().initEcho().setId(id);
    frame.add_raw(raw);
    link.send(frame, priority);
}

Bytes pattern(size_t size) {
    Bytes bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 4096);
    return bytes;
}

}  // namespace

TEST_CASE("frames go there and back") {
    for (Wire wire : all_wires) {
        CAPTURE(name_of(wire));
        Ends ends(wire);
        auto page = pattern(4096);
        uint64_t answers = 0;
        ends.acceptor->on_frame([&](ReceivedFrame&& frame) {
            send_echo(*ends.acceptor, frame.session().getEcho().getId(), Priority::urgent, page);
        });
        ends.initiator->on_frame([&](ReceivedFrame&& frame) {
            CHECK(frame.session().getEcho().getId() == answers);
            CHECK(std::equal(frame.raw().begin(), frame.raw().end(), page.begin(), page.end()));
            if (++answers == 200) return ends.loop->stop();
            send_echo(*ends.initiator, answers, Priority::urgent);
        });
        send_echo(*ends.initiator, 0, Priority::urgent);
        ends.run();
        CHECK(answers == 200);
        CHECK(ends.initiator->stats().frames_out == 200);
        CHECK(ends.initiator->stats().frames_in == 200);
        CHECK(ends.initiator->stats().bytes_in > 200 * 4096);
        CHECK(ends.initiator->stats().bytes_in == ends.acceptor->stats().bytes_out);
        CHECK((ends.initiator->round_trip() > 0s) == (wire != Wire::unix_socket));
        CHECK(ends.initiator->round_trip() < 1s);
    }
}

TEST_CASE("bulk of every size arrives whole and in order, both ways at once") {
    for (Wire wire : all_wires) {
        CAPTURE(name_of(wire));
        Ends ends(wire);
        std::vector<size_t> sizes = {
            0, 1, 4095, 4096, bulk_piece_bytes, bulk_piece_bytes + 1, 1u << 20, max_raw_bytes, 3};
        std::vector<Bytes> sent;
        for (size_t size : sizes) sent.push_back(pattern(size));
        size_t there = 0;
        size_t here = 0;
        auto expect = [&](size_t& count) {
            return [&](ReceivedFrame&& frame) {
                CHECK(frame.session().getEcho().getId() == count);
                CHECK(std::equal(frame.raw().begin(), frame.raw().end(), sent[count].begin(),
                                 sent[count].end()));
                ++count;
                if (there == sizes.size() && here == sizes.size()) ends.loop->stop();
            };
        };
        ends.acceptor->on_frame(expect(there));
        ends.initiator->on_frame(expect(here));
        for (size_t i = 0; i < sent.size(); ++i) {
            send_echo(*ends.initiator, i, Priority::bulk, sent[i]);
            send_echo(*ends.acceptor, i, Priority::bulk, sent[i]);
        }
        ends.run();
        CHECK(ends.initiator->queued_bytes() == 0);
        CHECK(ends.initiator_closed == "");
    }
}

TEST_CASE("an urgent frame waits behind at most one piece and a short kernel queue") {
    for (Wire wire : all_wires) {
        CAPTURE(name_of(wire));
        Ends ends(wire);
        auto piece = pattern(bulk_piece_bytes / 2);
        for (uint64_t i = 0; i < 512; ++i) send_echo(*ends.initiator, i, Priority::bulk, piece);
        REQUIRE(ends.initiator->queued_bytes() > 16u << 20);
        int unsent = 0;
        int request = wire == Wire::unix_socket ? SIOCOUTQ : SIOCOUTQNSD;
        REQUIRE(::ioctl(ends.initiator_fd, static_cast<unsigned long>(request), &unsent) == 0);
        CHECK(unsent <= (wire == Wire::unix_socket ? 600 << 10 : 256 << 10));
        uint64_t with_kernel = ends.initiator->stats().bytes_out;
        uint64_t bulk_before = 0;
        ends.acceptor->on_frame([&](ReceivedFrame&& frame) {
            if (frame.priority() == Priority::urgent) {
                bulk_before = ends.acceptor->stats().bytes_in;
                ends.loop->stop();
            }
        });
        send_echo(*ends.initiator, 1000, Priority::urgent);
        ends.run();
        // Received up to the read that held it; a read takes at most one receive buffer.
        CHECK(bulk_before <= with_kernel + bulk_piece_bytes + (1u << 20));
        CHECK(ends.initiator->queued_bytes() > 0);
    }
}

TEST_CASE("held frames leave in one write, in order of priority") {
    Ends ends(Wire::unix_socket);
    std::vector<uint64_t> order;
    ends.acceptor->on_frame([&](ReceivedFrame&& frame) {
        order.push_back(frame.session().getEcho().getId());
        if (order.size() == 4) ends.loop->stop();
    });
    {
        LinkBatch outer(*ends.initiator);
        send_echo(*ends.initiator, 1, Priority::bulk);
        {
            LinkBatch inner(*ends.initiator);
            send_echo(*ends.initiator, 2, Priority::urgent);
        }
        send_echo(*ends.initiator, 3, Priority::urgent);
        send_echo(*ends.initiator, 4, Priority::bulk);
        CHECK(ends.initiator->stats().bytes_out == 0);
    }
    CHECK(ends.initiator->queued_bytes() == 0);
    CHECK(ends.initiator->stats().bytes_out > 0);
    ends.run();
    CHECK(order == std::vector<uint64_t>{2, 3, 1, 4});
}

TEST_CASE("who produces bulk is told when it has drained") {
    Ends ends(Wire::tls_v4);
    int drained = 0;
    size_t arrived = 0;
    auto data = pattern(4u << 20);
    ends.acceptor->on_frame([&](ReceivedFrame&&) { ++arrived; });
    ends.initiator->on_drained([&] {
        if (++drained < 3) send_echo(*ends.initiator, 1, Priority::bulk, data);
    });
    send_echo(*ends.initiator, 0, Priority::bulk, data);
    ends.run_until([&] { return drained == 3 && arrived == 3; });
    CHECK(ends.initiator->queued_bytes() == 0);
}

TEST_CASE("closing says everything first, then why") {
    for (Wire wire : all_wires) {
        CAPTURE(name_of(wire));
        Ends ends(wire);
        auto data = pattern(8u << 20);
        size_t arrived = 0;
        ends.acceptor->on_frame([&](ReceivedFrame&& frame) { arrived += frame.raw().size(); });
        send_echo(*ends.initiator, 0, Priority::bulk, data);
        ends.initiator->close("the program ended\x1b[31m");
        send_echo(*ends.initiator, 1, Priority::urgent, data);  // too late: dropped
        ends.run_until(
            [&] { return !ends.initiator_closed.empty() && !ends.acceptor_closed.empty(); });
        CHECK(arrived == data.size());
        CHECK(ends.initiator_closed == "the program ended\x1b[31m");
        CHECK(ends.acceptor_closed ==
              "lost initiator peer: it ended the session: the program ended?[31m");
    }
}

TEST_CASE("a peer that just goes is noticed, and its last words are not lost") {
    for (Wire wire : all_wires) {
        CAPTURE(name_of(wire));
        Ends ends(wire);
        ends.acceptor.reset();
        ends.run_until([&] { return !ends.initiator_closed.empty(); });
        CHECK(ends.initiator_closed.find("lost acceptor ") == 0);

        // It says bye and is gone before we write.
        Ends second(wire);
        second.acceptor->close("out of memory");
        second.acceptor.reset();
        for (int i = 0; i < 10; ++i) {
            send_echo(*second.initiator, 1, Priority::urgent, pattern(100'000));
        }
        second.run_until([&] { return !second.initiator_closed.empty(); });
        CHECK(second.initiator_closed.find("out of memory") != std::string::npos);
    }
}

TEST_CASE("a frame that breaks the protocol ends the session with the reason") {
    for (Wire wire : all_wires) {
        CAPTURE(name_of(wire));
        auto outcome = shake_hands(wire);
        auto loop = std::move(*Loop::create());
        auto link = make_link(*loop, std::move(*outcome.acceptor));
        std::string why;
        int delivered = 0;
        link->on_frame([&](ReceivedFrame&&) { ++delivered; });
        link->on_closed([&](const Error& reason) {
            why = reason.message();
            loop->stop();
        });
        auto bytes = echo_frame(1);
        auto garbage = echo_frame(2);
        garbage[sizeof(FrameHeader) + 9] ^= std::byte{0x7f};
        auto after = echo_frame(3);
        bytes.insert(bytes.end(), garbage.begin(), garbage.end());
        bytes.insert(bytes.end(), after.begin(), after.end());
        iovec part{bytes.data(), bytes.size()};
        REQUIRE(outcome.initiator->stream->write({&part, 1}) == bytes.size());
        loop->run();
        CHECK(why.find("lost initiator peer: it broke the protocol") == 0);
        CHECK(delivered == 1);
    }
}

TEST_CASE("handlers may destroy the link") {
    for (Wire wire : {Wire::unix_socket, Wire::tls_v4}) {
        Ends ends(wire);
        ends.acceptor->on_frame([&](ReceivedFrame&& frame) {
            CHECK(frame.session().getEcho().getId() == 1);
            ends.acceptor.reset();
        });
        ends.initiator->on_closed([&](const Error&) {
            ends.initiator.reset();
            ends.loop->stop();
        });
        send_echo(*ends.initiator, 1, Priority::urgent);
        send_echo(*ends.initiator, 2, Priority::urgent);
        ends.run();
        CHECK_FALSE(ends.acceptor);
    }
}

TEST_CASE("frames that came right behind the handshake are delivered") {
    for (Wire wire : all_wires) {
        CAPTURE(name_of(wire));
        Attempt attempt;
        attempt.wire = wire;
        Sockets sockets = connected(wire);
        auto acceptor = std::async(std::launch::async, [&] {
            auto result = accept_session(std::move(sockets.acceptor), attempt.tokens,
                                         attempt.welcome, {"peer", true}, in_ms(5000));
            auto bytes = echo_frame(77, Priority::urgent, 4096);
            iovec part{bytes.data(), bytes.size()};
            GPR_ASSERT(result->stream->write({&part, 1}) == bytes.size());
            return result;
        });
        auto initiator = greet_acceptor(std::move(sockets.initiator), sockets.endpoint,
                                        attempt.token, attempt.hello, in_ms(5000));
        REQUIRE(initiator);
        auto keep = acceptor.get();
        auto loop = std::move(*Loop::create());
        auto link = make_link(*loop, std::move(*initiator));
        uint64_t id = 0;
        link->on_frame([&](ReceivedFrame&& frame) {
            id = frame.session().getEcho().getId();
            loop->stop();
        });
        loop->run();
        CHECK(id == 77);
    }
}

TEST_CASE("a quiet peer is not given up, nor one that is stopped for a while") {
    Ends quiet(Wire::tls_v4);
    auto mute = shake_hands(Wire::tls_v4);  // its acceptor never runs: as if stopped
    auto link = make_link(*quiet.loop, std::move(*mute.initiator));
    std::string why;
    link->on_closed([&](const Error& reason) { why = reason.message(); });
    // Another one, whose kernel soon has no room for what it does not read.
    auto full = shake_hands(Wire::tls_v4);
    auto busy = make_link(*quiet.loop, std::move(*full.initiator));
    busy->on_closed([&](const Error& reason) { why = reason.message(); });
    const std::vector<std::byte> bytes(1 << 20);
    for (uint64_t i = 0; i < 32; i++) {
        FrameBuilder frame;
        frame.session().initEcho().setId(i);
        frame.add_raw(bytes);
        busy->send(frame, Priority::bulk);
    }
    quiet.loop->after(12s,
                      [&] { quiet.loop->stop(); });  // the probes are more than 4.5 s apart by then
    quiet.run();
    CHECK(why == "");
    CHECK(busy->queued_bytes() > 0);
    CHECK(quiet.initiator_closed == "");
    CHECK(quiet.acceptor_closed == "");
    CHECK(quiet.initiator->stats().frames_in >= 3);  // pings
}
