#include "acceptor/box/session_ports.h"

#include <doctest/doctest.h>

#include <optional>

#include "tests/unit/temporary_folder.h"

namespace gpr {
namespace {

TEST_CASE("a range is two ports that are not root's") {
    CHECK(*parse_port_range("20000-20099") == PortRange{20000, 100});
    CHECK(*parse_port_range("65535-65535") == PortRange{65535, 1});
    CHECK(parse_port_range("20000-20099")->text() == "20000-20099");
    for (const char* text : {"", "7", "-", "2000-", "-2000", "80-2000", "3000-2000", "2000-65536",
                             "2000-2x", "a-b", " 2000-3000", "none"}) {
        CAPTURE(text);
        const auto refused = parse_port_range(text);
        REQUIRE_FALSE(refused);
        CHECK(refused.error().message().find("--session-ports wants FIRST-LAST") == 0);
    }
}

TEST_CASE("each session gets as many, or the range is too small") {
    CHECK(*share_of_ports({20000, 6400}, 64) == 100);
    CHECK(*share_of_ports({20000, 6463}, 64) == 100);
    const auto refused = share_of_ports({20000, 100}, 64);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message().find("--max-sessions") != std::string::npos);
}

TEST_CASE("no two sessions have the same ports, until the last copy of the lock is gone") {
    const TemporaryFolder folder;
    const auto list = folder.path() + "/ports";
    const PortRange all{20000, 25};
    std::optional<SessionPorts> first = *SessionPorts::take(all, 10, list);
    const auto second = SessionPorts::take(all, 10, list);
    CHECK(first->range() == PortRange{20000, 10});
    CHECK(second->range() == PortRange{20010, 10});
    CHECK_FALSE(SessionPorts::take(all, 10, list));
    // Another acceptor may share them otherwise.
    CHECK(SessionPorts::take({20005, 20}, 5, list)->range() == PortRange{20020, 5});
    first.reset();
    CHECK(SessionPorts::take(all, 10, list)->range() == PortRange{20000, 10});
    CHECK(SessionPorts::take({}, 0, list)->range().none());
}

}  // namespace
}  // namespace gpr
