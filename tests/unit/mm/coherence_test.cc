// The rules of coherence (mm/README.md), one by one, on directory and agents together.
#include <doctest/doctest.h>

#include "cluster.h"

using namespace gpr;

namespace {
constexpr PageKey page{1, 7};
}

TEST_CASE("an untouched page is granted as zero, exclusively, without payload") {
    Cluster c(2);
    c.add_object(1, 0);
    c.fault(1, page, Access::read, 10);
    REQUIRE(c.members[1].installs.size() == 1);
    CHECK(c.members[1].installs[0].contents[0].kind == ContentKind::zero);
    CHECK(c.members[1].installs[0].wake);
    CHECK(c.presence(1, page) == Presence::exclusive);
    CHECK(c.presence(0, page) == Presence::none);
}

TEST_CASE("a touched page is shared by a read, with its content") {
    Cluster c(2);
    c.add_object(1, 0);
    c.members[0].memory[page] = 77;
    c.fault(1, page, Access::read, 10);
    CHECK(c.members[1].memory[page] == 77);
    CHECK(c.presence(0, page) == Presence::shared);
    CHECK(c.presence(1, page) == Presence::shared);
    CHECK_FALSE(c.directory.holders(page).exclusive);
    CHECK(c.directory.holders(page).nodes == 3);
}

TEST_CASE("a write to a shared page moves the ownership and no data") {
    Cluster c(2);
    c.add_object(1, 0);
    c.members[0].memory[page] = 77;
    c.fault(1, page, Access::read, 10);
    c.fault(1, page, Access::write, 10);
    c.pass_holds();
    CHECK(c.presence(1, page) == Presence::exclusive);
    CHECK(c.presence(0, page) == Presence::none);
    CHECK(c.members[1].writable.contains(page));
    CHECK(c.directory.stats().keep_grants == 1);
    CHECK_FALSE(c.last<Recall>().want_data);
    CHECK(c.members[1].installs.size() == 1);
}

TEST_CASE("a fault on the birth node's own page is served without any message") {
    Cluster c(2);
    c.add_object(1, 1);
    c.fault(1, page, Access::write, 10);
    CHECK(c.delivered.empty());
    CHECK(c.members[1].installs.size() == 1);
}

TEST_CASE("a repeated fault message is answered by a wake") {
    Cluster c(2);
    c.add_object(1, 0);
    c.fault(1, page, Access::write, 10);
    const size_t messages = c.delivered.size();
    c.fault(1, page, Access::write, 10);
    CHECK(c.delivered.size() == messages);
    CHECK(c.members[1].wakes == std::vector<PageKey>{page});
}

TEST_CASE("a recall that overtakes its grant waits for it") {
    Cluster c(2);
    c.add_object(1, 0);
    c.members[0].memory[page] = 5;
    c.members[1].agent->on_fault({page, Access::write, 10, 0, 0}, c.now);
    c.collect_actions();
    while (!(c.flights.size() == 1 && std::get_if<Grant>(&c.flights[0].message.body))) {
        const auto f = c.flights.front();
        c.flights.pop_front();
        c.deliver(f);
        c.collect_actions();
    }
    const auto grant = c.flights.front();
    c.flights.pop_front();
    c.fault(0, page, Access::write, 20);  // recalls from node 1 what has not arrived there
    CHECK(c.presence(0, page) == Presence::none);
    c.flights.push_back(grant);
    c.run();
    CHECK(c.presence(1, page) == Presence::exclusive);
    c.pass_holds();
    CHECK(c.presence(0, page) == Presence::exclusive);
    CHECK(c.members[0].memory[page] == 5);
}

TEST_CASE("a grant of an earlier generation installs nothing") {
    Cluster c(2);
    c.add_object(1, 0);
    c.members[0].memory[page] = 5;
    c.members[1].agent->on_fault({page, Access::read, 10, 0, 0}, c.now);
    c.collect_actions();
    Cluster::Flight grant;
    while (!c.flights.empty()) {
        const auto f = c.flights.front();
        c.flights.pop_front();
        if (std::get_if<Grant>(&f.message.body)) {
            grant = f;
        } else {
            c.deliver(f);
        }
        c.collect_actions();
    }
    c.drop_everywhere(1, 0, 100);
    c.run();
    CHECK(c.members[1].wakes == std::vector<PageKey>{page});  // to fault again
    c.flights.push_back(grant);
    c.run();
    CHECK(c.members[1].installs.empty());
    c.fault(1, page, Access::read, 10);
    CHECK(c.members[1].memory[page] == 0);
}

TEST_CASE("pages that nodes read and then write in turn travel exclusively at the read") {
    Cluster c(2);
    c.add_object(1, 0);
    c.members[0].memory[page] = 1;
    for (int round = 0; round < 3; ++round) {
        for (unsigned n : {1U, 0U}) {
            if (c.presence(n, page) == Presence::none) c.fault(n, page, Access::read, 10 + n);
            if (c.presence(n, page) == Presence::shared) c.fault(n, page, Access::write, 10 + n);
            c.pass_holds();
        }
    }
    CHECK(c.directory.stats().migratory_grants >= 3);
    CHECK(c.presence(0, page) == Presence::exclusive);
}

namespace {
// Node 1 reads some pages that node 0 has written, one thread each, and writes every `writes`th.
void read_pages(Cluster& c, uint64_t first, uint64_t count, uint64_t writes) {
    for (uint64_t i = first; i < first + count; ++i) {
        c.fault(1, {1, 7 * i}, Access::read, static_cast<Tid>(100 + i));
        const bool is_written = writes != 0 && i % writes == 0;
        if (is_written && c.presence(1, {1, 7 * i}) == Presence::shared) {
            c.fault(1, {1, 7 * i}, Access::write, static_cast<Tid>(100 + i));
        }
        c.pass_holds();
    }
}
}  // namespace

TEST_CASE("first reads are granted exclusively where writes mostly follow") {
    Cluster c(2);
    c.add_object(1, 0);
    for (uint64_t i = 0; i < 1000; ++i) c.members[0].memory[{1, i}] = i;
    read_pages(c, 0, 20, 2);
    c.fault(1, {1, 7 * 21}, Access::read, 10);
    CHECK(c.presence(1, {1, 7 * 21}) == Presence::exclusive);
    CHECK(c.presence(0, {1, 7 * 21}) == Presence::none);
    CHECK(c.members[1].memory[{1, 7 * 21}] == 7 * 21);
    // That was in vain, as the other node reads it next: it is not done again.
    c.pass_holds();
    c.fault(0, {1, 7 * 21}, Access::read, 11);
    CHECK(c.presence(0, {1, 7 * 21}) == Presence::shared);
    CHECK(c.presence(1, {1, 7 * 21}) == Presence::shared);
    // Nor does it seem to migrate when that node writes it, which it always did.
    c.fault(0, {1, 7 * 21}, Access::write, 11);
    c.pass_holds();
    c.fault(1, {1, 7 * 21}, Access::read, 10);
    CHECK(c.presence(0, {1, 7 * 21}) == Presence::shared);
    CHECK(c.presence(1, {1, 7 * 21}) == Presence::shared);
}

TEST_CASE("first reads are shared where few writes follow") {
    for (const uint64_t writes : {0, 10}) {
        Cluster c(2);
        c.add_object(1, 0);
        for (uint64_t i = 0; i < 1000; ++i) c.members[0].memory[{1, i}] = i;
        read_pages(c, 0, 40, writes);
        c.fault(1, {1, 7 * 41}, Access::read, 10);
        CHECK(c.presence(1, {1, 7 * 41}) == Presence::shared);
        CHECK(c.presence(0, {1, 7 * 41}) == Presence::shared);
    }
}

TEST_CASE("read-ahead travels in runs and grows while a thread streams") {
    Cluster c(2);
    c.add_object(1, 0);
    for (uint64_t i = 0; i < 1000; ++i) c.members[0].memory[{1, i}] = i;
    c.fault(1, {1, 0}, Access::read, 10, 15);
    CHECK(c.presence(1, {1, 15}) == Presence::shared);
    CHECK(c.presence(1, {1, 16}) == Presence::none);
    CHECK(c.members[0].takes.size() <= 2);
    unsigned faults = 0;
    for (uint64_t i = 0; i < 1000; ++i) {
        if (c.presence(1, {1, i}) != Presence::none) continue;
        ++faults;
        c.members[1].agent->on_fault({{1, i}, Access::read, 10, 0, i, 999 - i}, c.now);
        c.run();
        CHECK(c.members[1].memory[{1, i}] == i);
    }
    CHECK(faults < 30);
    CHECK(c.presence(1, {1, 1000}) == Presence::none);  // the limit is kept
}

TEST_CASE("read-ahead leaves alone what is in use") {
    Cluster c(2);
    c.add_object(1, 0);
    c.fault(0, {1, 3}, Access::write, 20);  // held
    c.members[0].memory[{1, 0}] = 1;
    c.fault(1, {1, 0}, Access::write, 10, 10);
    CHECK(c.presence(1, {1, 0}) == Presence::exclusive);
    CHECK(c.presence(1, {1, 2}) == Presence::exclusive);
    CHECK(c.presence(1, {1, 3}) == Presence::none);
    CHECK(c.presence(0, {1, 3}) == Presence::exclusive);
    CHECK_FALSE(c.directory.holders({1, 3}).busy);
}

TEST_CASE("a pinned page is refused, and tried again later") {
    Cluster c(3);
    c.add_object(1, 1);
    c.members[1].memory[page] = 9;
    c.members[1].pinned.insert(page);
    c.fault(2, page, Access::read, 10);
    REQUIRE(c.members[2].anchored.size() == 1);
    CHECK(c.members[2].anchored[0].anchor == 1);
    CHECK(c.members[2].anchored[0].tid == 10);
    CHECK(c.directory.holders(page).anchored);
    c.members[1].pinned.clear();
    c.fault(0, page, Access::read, 11);  // too early for another try
    CHECK(c.members[0].anchored.size() == 1);
    c.now += DirectoryOptions{}.first_probe_ns;
    c.fault(0, page, Access::read, 11);
    CHECK(c.members[0].memory[page] == 9);
    CHECK_FALSE(c.directory.holders(page).anchored);
}

TEST_CASE("a page that a file lacks is refused, and asked for anew each time") {
    Cluster c(2);
    c.add_object(1, 0);
    c.members[0].memory[page] = 9;
    for (uint64_t i = 1; i < 20; ++i) c.members[0].absent.insert(page + i);
    for (size_t round = 1; round <= 3; ++round) {
        c.fault(1, page + 1, Access::write, 10, 10);  // with others ahead
        REQUIRE(c.members[1].anchored.size() == round);
        CHECK(c.members[1].anchored.back().anchor == nowhere);
        CHECK(c.members[1].anchored.back().key == page + 1);
        CHECK(c.members[1].anchored.back().tid == 10);
        for (uint64_t i = 1; i < 12; ++i) {
            CHECK(c.presence(0, page + i) == Presence::exclusive);
            CHECK(c.presence(1, page + i) == Presence::none);
            CHECK_FALSE(c.directory.holders(page + i).anchored);
            CHECK_FALSE(c.directory.holders(page + i).busy);
        }
    }
    c.members[0].absent.clear();  // the file has grown
    c.members[0].memory[page + 1] = 7;
    c.fault(1, page + 1, Access::write, 10);
    CHECK(c.members[1].memory[page + 1] == 7);
    CHECK(c.presence(1, page + 1) == Presence::exclusive);
    CHECK(c.members[1].anchored.size() == 3);
}

TEST_CASE("a page that was refused is not asked for unless a thread looks at it again") {
    Cluster c(2);
    c.add_object(1, 0);
    c.members[0].memory[page] = 9;
    c.members[0].absent.insert(page + 1);
    c.members[0].memory[page + 2] = 8;
    for (uint64_t i = 0; i < 3; ++i) c.fault(1, page + i, Access::write, 10);
    REQUIRE(c.members[1].anchored.size() == 1);
    c.pass_holds();
    for (uint64_t i = 0; i < 3; i += 2) c.fault(0, page + i, Access::write, 20);
    c.pass_holds();
    c.members[0].absent.clear();  // the file has grown, and will be written
    c.fault(1, page, Access::write, 10);
    CHECK(c.presence(1, page + 1) == Presence::none);
    CHECK(c.presence(1, page + 2) == Presence::exclusive);  // which it missed after that
}

TEST_CASE("a shared page that turns out to be pinned becomes its node's alone") {
    Cluster c(3);
    c.add_object(1, 0);
    c.members[0].memory[page] = 9;
    c.fault(1, page, Access::read, 10);
    c.fault(2, page, Access::read, 11);
    c.pass_holds();
    c.members[1].pinned.insert(page);
    c.fault(0, page, Access::write, 12);
    c.pass_holds();
    CHECK(c.members[0].anchored.size() == 1);
    CHECK(c.presence(1, page) == Presence::exclusive);
    CHECK(c.presence(0, page) == Presence::none);
    CHECK(c.presence(2, page) == Presence::none);
}

TEST_CASE("a leaving thread takes pages along") {
    Cluster c(2);
    c.add_object(1, 0);
    c.members[0].memory[page] = 3;
    c.members[0].memory[page + 1] = 4;
    CHECK(c.members[0].agent->give_away(page, 1, Access::write, 10, c.now));
    CHECK(c.members[0].agent->give_away(page + 1, 1, Access::read, 10, c.now));
    c.run();
    CHECK(c.count<Request>() == 0);
    CHECK(c.presence(1, page) == Presence::exclusive);
    CHECK(c.presence(0, page) == Presence::none);
    CHECK(c.presence(1, page + 1) == Presence::shared);
    CHECK(c.presence(0, page + 1) == Presence::shared);
    CHECK(c.members[1].memory[page] == 3);
    CHECK_FALSE(c.members[0].agent->give_away(page, 1, Access::read, 10, c.now));
    c.delivered.clear();
    CHECK(c.members[0].agent->give_away(page + 1, 1, Access::write, 10, c.now));
    c.run();
    CHECK(c.count<Request>() + c.count<Recall>() == 0);
    CHECK(c.last<Push>().contents[0].kind == ContentKind::none);
    CHECK(c.last<Grant>().contents[0].kind == ContentKind::none);
    CHECK(c.presence(1, page + 1) == Presence::exclusive);
    CHECK(c.presence(0, page + 1) == Presence::none);
}

TEST_CASE("a mere right that crosses another's wish loses no content") {
    Cluster c(3);
    c.add_object(1, 0);
    c.members[0].memory[page] = 7;
    for (unsigned n : {1, 2}) c.fault(n, page, Access::read, static_cast<Tid>(10 + n));
    c.pass_holds();
    auto give = [&](unsigned from, NodeId to) {
        return c.members[from].agent->give_away(page, to, Access::write, 10, c.now);
    };
    SUBCASE("each sharer gives it to the next at the same time") {
        CHECK(give(0, 1));
        CHECK(give(1, 2));
        CHECK(give(2, 0));
        c.run();
    }
    SUBCASE("a third node is about to write") {
        c.members[2].agent->on_fault({page, Access::write, 12}, c.now);
        CHECK(give(1, 0));
        CHECK(give(0, 1));
        c.run();
        CHECK(c.presence(2, page) == Presence::exclusive);
    }
    SUBCASE("a thread that stayed wants the page back at once") {
        CHECK(give(1, 0));
        c.collect_actions();
        c.members[1].agent->on_fault({page, Access::read, 15}, c.now);
        c.run();
        c.pass_holds();
        CHECK(c.presence(1, page) != Presence::none);
    }
    SUBCASE("its request overtakes the right") {
        CHECK(give(1, 0));
        c.collect_actions();
        c.members[1].agent->on_fault({page, Access::read, 15}, c.now);
        c.collect_actions();
        REQUIRE(c.flights.size() == 2);
        std::swap(c.flights.front(), c.flights.back());
        c.run();
        c.pass_holds();
        CHECK(c.presence(1, page) != Presence::none);
    }
    c.pass_holds();
    CHECK_FALSE(c.directory.holders(page).busy);
    c.directory.collect(1, 0, 10, 0, Access::write, 99, c.now);
    c.run();
    CHECK(c.members[0].memory.at(page) == 7);
}

TEST_CASE("a right that overtakes the content finds no old content in its place") {
    Cluster c(3);
    c.add_object(1, 0);
    c.members[0].memory[page] = 7;
    for (unsigned n : {1, 2}) c.fault(n, page, Access::read, static_cast<Tid>(10 + n));
    c.pass_holds();
    // Node 1 has given its copy up, in case that node 0 does not get the right.
    CHECK(c.members[1].agent->give_away(page, 0, Access::write, 10, c.now));
    c.run();
    REQUIRE(c.presence(0, page) == Presence::exclusive);
    c.members[0].memory[page] = 8;
    c.pass_holds();
    c.members[1].agent->on_fault({page, Access::read, 11, 0, 0}, c.now);
    c.collect_actions();
    std::deque<Cluster::Flight> content;
    while (!c.flights.empty()) {
        const auto f = c.flights.front();
        c.flights.pop_front();
        if (std::get_if<Grant>(&f.message.body)) {
            content.push_back(f);
        } else {
            c.deliver(f);
        }
        c.collect_actions();
    }
    REQUIRE(content.size() == 1);
    c.directory.collect(1, 0, 10, 1, Access::write, 99, c.now);
    c.run();
    CHECK(c.last<Grant>().contents[0].kind == ContentKind::none);
    c.flights = content;
    c.run();
    CHECK(c.presence(1, page) == Presence::exclusive);
    CHECK(c.members[1].memory.at(page) == 8);
}

TEST_CASE("an acquire ends when all its pages are here, and holds them until released") {
    Cluster c(2);
    c.add_object(1, 0);
    for (uint64_t i = 0; i < 40; ++i) c.members[0].memory[{1, i}] = i;
    c.members[1].agent->acquire({{1, 0, 40}}, Access::write, 5, true, c.now);
    c.run();
    REQUIRE(c.members[1].acquired.size() == 1);
    CHECK(c.members[1].acquired[0].cookie == 5);
    CHECK(c.count<Request>() == 1);
    CHECK(c.members[0].takes.size() == 1);
    for (uint64_t i = 0; i < 40; ++i) CHECK(c.presence(1, {1, i}) == Presence::exclusive);
    c.fault(0, {1, 3}, Access::write, 20);
    c.pass_holds();
    CHECK(c.presence(1, {1, 3}) == Presence::exclusive);
    c.members[1].agent->release(5, c.now);
    c.run();
    CHECK(c.presence(0, {1, 3}) == Presence::exclusive);
}

TEST_CASE("what is held stays at node 0 until it is released as often") {
    Cluster c(2);
    c.add_object(1, 0);
    c.members[0].memory[page] = 6;
    c.fault(1, page, Access::write, 10);
    c.pass_holds();
    c.members[1].memory[page] = 7;
    c.directory.hold(1);
    c.directory.hold(1);
    c.directory.collect(1, 0, 100, 0, Access::read, 1, c.now);
    c.run();
    REQUIRE(c.collected.size() == 1);
    CHECK(c.members[0].memory[page] == 7);
    c.fault(1, page, Access::write, 10);
    c.pass_holds();
    CHECK(c.presence(1, page) == Presence::shared);
    CHECK(c.presence(0, page) == Presence::shared);
    c.fault(0, page, Access::write, 11);  // node 0 itself may
    c.pass_holds();
    CHECK(c.presence(0, page) == Presence::exclusive);
    c.directory.release(1, c.now);
    c.run();
    CHECK(c.presence(1, page) == Presence::none);
    c.directory.release(1, c.now);
    c.run();
    c.pass_holds();
    CHECK(c.presence(1, page) == Presence::exclusive);
    CHECK(c.members[1].memory[page] == 7);
}

TEST_CASE("a removed node's only copies are counted as lost, shared ones live on") {
    Cluster c(3);
    c.add_object(1, 0);
    c.members[0].memory[page] = 6;
    c.fault(2, page, Access::read, 10);
    c.fault(2, page + 1, Access::write, 10);
    c.pass_holds();
    CHECK(c.directory.remove_node(2, c.now) == 1);
    c.run();
    c.fault(1, page, Access::read, 11);
    CHECK(c.members[1].memory[page] == 6);
    CHECK(c.presence(0, page + 1) == Presence::exclusive);
}

TEST_CASE("requests that wait at a removed node are served by the others") {
    Cluster c(3);
    c.add_object(1, 2);
    c.members[1].agent->on_fault({page, Access::write, 11, 0, 0}, c.now);
    c.collect_actions();
    c.deliver(c.flights.front());
    c.flights.clear();
    c.collect_actions();
    c.flights.clear();  // the recall dies with node 2
    CHECK(c.presence(1, page) == Presence::none);
    c.directory.remove_node(2, c.now);
    c.run();
    CHECK(c.presence(1, page) == Presence::exclusive);
}

TEST_CASE("directory and agents of two nodes stay under 48 bytes a touched page") {
    Cluster c(2);
    c.add_object(1, 0);
    constexpr uint64_t pages = 200'000;
    for (uint64_t i = 0; i < pages; i += 500) {
        c.members[1].agent->acquire({{1, i, 500}}, Access::write, i + 1, false, c.now);
        c.run();
    }
    c.pass_holds();
    c.pass_holds();
    CHECK(c.presence(1, {1, pages - 1}) == Presence::exclusive);
    const size_t bytes = c.directory.memory_bytes() + c.members[0].agent->memory_bytes() +
                         c.members[1].agent->memory_bytes();
    CHECK(bytes <= 48 * pages);
    CHECK(bytes >= 24 * pages);  // it counts what there is
    c.drop_everywhere(1, 1, pages - 2);
    CHECK(c.directory.memory_bytes() + c.members[0].agent->memory_bytes() +
              c.members[1].agent->memory_bytes() <=
          48 * pages);
}
