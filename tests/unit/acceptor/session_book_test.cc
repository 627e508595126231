#include "acceptor/daemon/session_book.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace gpr;

namespace {

Hello hello_of(const char* id) {
    Hello hello;
    hello.session_id = id;
    hello.host.host_name = "desk";
    hello.program = {"/usr/bin/tool", "ada", 17};
    return hello;
}

// What the worker has: the same memory.
SharedTally same(const SharedTally& tally) {
    auto mapped = SharedTally::map(Fd(dup(tally.fd())));
    REQUIRE(mapped);
    return std::move(*mapped);
}

bool tells(const SessionBook& book, const std::string& line) {
    return ("\n" + book.metrics({4, {}})).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("what a worker counts is told while it is there, and stays counted") {
    SessionBook book;
    auto tally = SharedTally::create();
    REQUIRE(tally);
    SharedTally workers = same(*tally);
    book.came(100, "10.0.0.1:5", std::move(*tally));
    CHECK(book.sessions().empty());  // it has not proven anything yet
    CHECK(tells(book, "gpr_acceptor_sessions 0"));

    Device device;
    device.id = "gpu0";
    book.is_session(100, hello_of("abc"), {device});
    SessionTally counted;
    counted.cpu_ns = 2'500'000'000;
    counted.threads = 3;
    counted.arrivals = 7;
    counted.bytes_in = 1000;
    counted.counts.pages.pages_in = 11;
    counted.counts.calls.by_rule = 4;
    counted.fault_waits.counts[0] = 2;
    counted.fault_waits.sum_ns = 3'000'000'000;
    workers.write(counted);
    const auto sessions = book.sessions();
    REQUIRE(sessions.size() == 1);
    const SessionDescription& about = sessions.front();
    CHECK(about.id == "abc");
    CHECK(about.host == "desk");
    CHECK(about.peer == "10.0.0.1:5");
    CHECK(about.program.user == "ada");
    CHECK(about.cpu_ns == 2'500'000'000);
    CHECK(about.threads == 3);
    CHECK(about.bytes_in == 1000);
    CHECK(about.devices == std::vector<std::string>{"gpu0"});
    CHECK(tells(book, "gpr_acceptor_sessions 1"));
    CHECK(tells(book, "gpr_acceptor_threads 3"));

    book.left(100);
    book.left(100);
    CHECK(book.sessions().empty());
    CHECK(tells(book, "gpr_acceptor_sessions 0"));
    CHECK(tells(book, "gpr_acceptor_threads 0"));
    CHECK(tells(book, "gpr_acceptor_sessions_begun_total 1"));
    CHECK(tells(book, "gpr_acceptor_cpu_seconds_total 2.5"));
    CHECK(tells(book, "gpr_acceptor_crossings_total 7"));
    CHECK(tells(book, "gpr_acceptor_pages_total{direction=\"in\"} 11"));
    CHECK(tells(book, "gpr_acceptor_calls_total{made=\"by_rule\"} 4"));
    CHECK(tells(book, "gpr_acceptor_fault_wait_seconds_sum 3"));
    CHECK(tells(book, "gpr_acceptor_fault_wait_seconds_count 2"));
}

TEST_CASE("a connection that is no session, and one without counts") {
    SessionBook book;
    book.came(1, "peer", std::nullopt);
    book.left(1);
    book.came(2, "peer", std::nullopt);
    book.is_session(2, hello_of("x"), {});
    book.is_session(3, hello_of("never came"), {});
    book.note_refused();
    CHECK(book.sessions().size() == 1);
    CHECK(tells(book, "gpr_acceptor_sessions_begun_total 1"));
    CHECK(tells(book, "gpr_acceptor_refused_total 1"));
}

TEST_CASE("memory of a tally cannot be cut short by the other one who has it") {
    auto tally = SharedTally::create();
    REQUIRE(tally);
    SharedTally other = same(*tally);
    CHECK(ftruncate(other.fd(), 0) != 0);
    SessionTally five;
    five.counts.pages.faults = 5;
    tally->write(five);
    CHECK(other.read().counts.pages.faults == 5);
    SharedTally moved = std::move(other);
    CHECK(moved.read().counts.pages.faults == 5);
    moved = std::move(*tally);
    CHECK(moved.read().counts.pages.faults == 5);

    CHECK(!SharedTally::map(Fd()));
    CHECK(!SharedTally::map(Fd(memfd_create("short", MFD_CLOEXEC))));
}
