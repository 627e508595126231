#include "mm/read_ahead.h"

#include <doctest/doctest.h>

#include <set>

#include "cluster.h"

namespace gpr {

namespace {

constexpr uint64_t object_pages = 10'000;

// A thread and what has come for it: at once, or (late) never before it asks for it.
class Reader {
public:
    explicit Reader(bool late) : late_(late) {}

    void touch(uint64_t index, Access access = Access::read) {
        if (here_.contains(index)) return;
        const bool come = kept_.erase(index) > 0;
        ++faults;
        stalls += !come;
        here_.insert(index);
        const ReadAhead::Touch touch{7, {1, index}, access, come, index, object_pages - 1 - index,
                                     0};
        for (const ReadAhead::Ask& ask : ahead.on_fault(touch)) {
            for (uint32_t i = 0; i < ask.count; ++i) {
                const uint64_t page = ask.first + static_cast<uint64_t>(ask.stride) * i;
                CHECK(page < object_pages);
                // The agent leaves out what is here already.
                const bool is_block = ask.marker == UINT32_MAX;
                CHECK((asked.insert(page).second || is_block));
                if (late_ || here_.contains(page)) continue;
                (i == ask.marker ? kept_ : here_).insert(page);
            }
        }
    }

    ReadAhead ahead;
    unsigned faults = 0, stalls = 0;
    std::set<uint64_t> asked;

private:
    bool late_;
    std::set<uint64_t> here_, kept_;
};

void touch_in_no_order(Reader& r, unsigned times) {
    uint64_t at = 1;
    for (unsigned i = 0; i < times; ++i) {
        at = at * 6364136223846793005ULL + 1442695040888963407ULL;
        r.touch((at >> 33) % object_pages);
    }
}

}  // namespace

TEST_CASE("a stream is asked for before it is needed, in either direction and with gaps") {
    for (int64_t stride : {1, -1, 3, -7}) {
        CAPTURE(stride);
        Reader r(false);
        uint64_t at = stride > 0 ? 0 : object_pages - 1;
        for (unsigned i = 0; i < 1000; ++i, at += static_cast<uint64_t>(stride)) r.touch(at);
        CHECK(r.stalls < 8);
        CHECK(r.faults < (stride == 1 || stride == -1 ? 40U : 150U));
    }
}

TEST_CASE("at most as much is asked for in vain as was used, and never more than the bound") {
    for (uint64_t length : {3, 10, 50, 300, 5000}) {
        Reader r(true);
        for (uint64_t i = 0; i < length; ++i) r.touch(i);
        uint64_t in_vain = 0;
        for (uint64_t page : r.asked) in_vain += page >= length;
        CAPTURE(length);
        CHECK(in_vain <= length + 2);
        CHECK(in_vain <= ReadAheadOptions{}.most_ahead);
    }
}

TEST_CASE("depth stays moderate while pages come in time, and grows while they do not") {
    Reader in_time(false), late(true);
    for (uint64_t i = 0; i < 5000; ++i) {
        in_time.touch(i);
        late.touch(i);
    }
    CHECK(*in_time.asked.rbegin() < 5000 + 2 * ReadAheadOptions{}.comfortable);
    CHECK(*late.asked.rbegin() > 5000 + ReadAheadOptions{}.most_ahead / 2);
}

TEST_CASE("nothing is asked for when few pages are touched, in no order") {
    Reader r(true);
    touch_in_no_order(r, 60);
    CHECK(r.asked.size() < 10);
}

TEST_CASE("what is touched all over, in no order, comes before most of it is touched") {
    Reader r(false);
    touch_in_no_order(r, 20'000);
    const uint64_t blocks = object_pages / DenseBlocks::block_pages + 1;
    CHECK(r.faults < blocks * DenseBlocks::first_misses);
    CHECK(r.faults > blocks * DenseBlocks::least_misses / 2);
}

TEST_CASE("several streams of a thread do not disturb each other") {
    Reader r(false);
    for (uint64_t i = 0; i < 1000; ++i) {
        r.touch(i);
        r.touch(4000 + i);
        r.touch(9000 - i);
        if (i % 10 == 0) r.touch(i * 7919 % 1000 + 6000);
    }
    CHECK(r.stalls < 24 + 100);
}

TEST_CASE(
    "a marker waits outside until the thread comes, another node wants it, or a copy is made") {
    Cluster c(2);
    c.add_object(1, 0);
    for (uint64_t i = 0; i < 200; ++i) c.members[0].memory[{1, i}] = 100 + i;
    auto touch = [&](uint64_t i) {
        if (c.presence(1, {1, i}) != Presence::none) return;
        c.members[1].agent->on_fault({{1, i}, Access::read, 10, 0, i, 199 - i}, c.now);
        c.run();
        CHECK(c.members[1].memory.at({1, i}) == 100 + i);
    };
    uint64_t i = 0;
    while (c.members[1].agent->stats().markers_kept == 0) touch(i++);
    std::vector<PageKey> kept;
    auto find_kept = [&] {
        kept.clear();
        for (uint64_t k = 0; k < 200; ++k) {
            const bool held = c.directory.holders({1, k}).nodes & 2;
            if (held && !c.members[1].memory.contains({1, k})) kept.push_back({1, k});
        }
        return kept.size();
    };
    REQUIRE(find_kept() == 1);
    SUBCASE("it is a fault, served without a message") {
        c.delivered.clear();
        touch(kept[0].index);
        CHECK(c.members[1].agent->stats().markers_reached == 1);
        for (const Cluster::Flight& f : c.delivered) {
            const auto* request = std::get_if<Request>(&f.message.body);
            CHECK((!request || request->must == 0));
        }
        CHECK(c.count<Request>() > 0);  // it goes on
    }
    SUBCASE("a writer elsewhere gets it") {
        c.fault(0, kept[0], Access::write, 20);
        CHECK(c.presence(0, kept[0]) == Presence::exclusive);
        CHECK_FALSE(c.members[1].memory.contains(kept[0]));
    }
    SUBCASE("a copy of the memory has it") {
        c.members[1].agent->let_pages_wait(false, c.now);
        c.run();
        CHECK(find_kept() == 0);
        for (; i < 150; ++i) touch(i);
        CHECK(find_kept() == 0);
    }
    SUBCASE("a dropped one is gone") {
        c.drop_everywhere(1, 0, 200);
        c.run();
        c.fault(1, kept[0], Access::read, 10);
        CHECK(c.members[1].memory.at(kept[0]) == 0);
    }
    SUBCASE("the supervisor's own need brings it in") {
        c.members[1].agent->acquire({{1, kept[0].index, 1}}, Access::read, 5, false, c.now);
        c.run();
        CHECK(c.members[1].memory.at(kept[0]) == 100 + kept[0].index);
    }
}

}  // namespace gpr
