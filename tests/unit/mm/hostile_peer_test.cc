// Bytes from a peer may say anything. Whatever they say, neither core may abort or hang.
#include <doctest/doctest.h>

#include <random>

#include "mm/page_agent.h"
#include "mm/page_directory.h"

using namespace gpr;

namespace {

class Nonsense {
public:
    explicit Nonsense(uint64_t seed) : random_(seed) {}

    Message message() {
        switch (pick(9)) {
            case 0:
                return {pick(50), Request{run(), pick(6), access(), presence(),
                                          static_cast<Tid>(pick(5)), pick(50), epochs()}};
            case 1:
                return {pick(50), Grant{run(), presence(), static_cast<Tid>(pick(5)), pick(3),
                                        epochs(), contents()}};
            case 2:
                return {pick(50), Recall{run(),
                                         presence(),
                                         pick(2) == 0,
                                         pick(2) == 0,
                                         pick(5),
                                         {pick(50), static_cast<NodeId>(pick(3)), 1},
                                         epochs()}};
            case 3: return {pick(50), Surrender{run(), presence(), pick(5), epochs(), contents()}};
            case 4:
                return {pick(50), Push{run(), static_cast<NodeId>(pick(20)), presence(), presence(),
                                       1, epochs(), contents()}};
            case 5: return {pick(50), Refused{run(), static_cast<NodeId>(pick(20)), epochs()}};
            case 6: return {pick(50), Census{run(), pick(4)}};
            case 7: {
                std::vector<PageSpan> spans(pick(3));
                for (PageSpan& span : spans) span = {pick(8), pick(20) == 0 ? ~0ULL : pick(4)};
                return {pick(50), Touched{run(), pick(4), pick(6), std::move(spans)}};
            }
            default: return {pick(50), Ack{pick(4), pick(4)}};
        }
    }
    uint32_t pick(uint32_t below) { return static_cast<uint32_t>(random_() % below); }
    Access access() { return pick(2) ? Access::write : Access::read; }

private:
    PageRun run() {
        count_ = pick(20) == 0 ? pick(2000) : 1 + pick(4);
        const uint64_t first = pick(50) == 0 ? random_() : pick(6);
        return {1 + pick(3), first, count_};
    }
    Presence presence() { return static_cast<Presence>(pick(3)); }
    std::vector<Epoch> epochs() {
        std::vector<Epoch> e(pick(20) == 0 ? pick(5) : count_);
        for (Epoch& x : e) x = make_epoch(pick(10) == 0 ? 1 : 0, pick(6));
        return e;
    }
    std::vector<PageContent> contents() {
        std::vector<PageContent> c(pick(20) == 0 ? pick(5) : count_);
        for (PageContent& x : c) x.kind = static_cast<ContentKind>(pick(5));
        return c;
    }
    std::mt19937_64 random_;
    uint32_t count_ = 1;
};

}  // namespace

TEST_CASE("the directory survives any messages") {
    for (uint64_t seed = 0; seed < 200; ++seed) {
        Nonsense nonsense(seed);
        PageDirectory directory;
        directory.add_object(1, 0);
        directory.add_object(2, 1);
        std::vector<Action> actions;
        uint64_t sent = 0;
        for (uint64_t i = 0; i < 500; ++i) {
            directory.on_message(static_cast<NodeId>(nonsense.pick(18)), nonsense.message(),
                                 i * 1000);
            if (nonsense.pick(50) == 0) directory.drop(1 + nonsense.pick(2), nonsense.pick(6), 3);
            if (nonsense.pick(80) == 0) {
                directory.collect(1 + nonsense.pick(2), 0, 6, static_cast<NodeId>(nonsense.pick(3)),
                                  Access::write, i, i);
            }
            directory.drain(actions);
            sent += actions.size();
        }
        CHECK(sent > 0);
        CHECK(directory.stats().bad_messages > 0);
        directory.remove_node(2, 1'000'000);
    }
}

TEST_CASE("an agent survives any messages") {
    for (uint64_t seed = 0; seed < 200; ++seed) {
        Nonsense nonsense(seed);
        PageAgent agent(1);
        agent.add_object(1, 0);
        agent.add_object(2, 1);
        std::vector<Action> actions;
        uint64_t done = 0;
        for (uint64_t i = 0; i < 500; ++i) {
            const uint64_t now = i * 20'000;
            agent.on_message(nonsense.message(), now);
            if (nonsense.pick(3) == 0) {
                agent.on_fault({{1 + nonsense.pick(2), nonsense.pick(6)},
                                nonsense.access(),
                                static_cast<Tid>(1 + nonsense.pick(4)),
                                nonsense.pick(4),
                                3},
                               now);
            }
            if (nonsense.pick(50) == 0) agent.drop(1 + nonsense.pick(2), nonsense.pick(6), 3);
            if (nonsense.pick(30) == 0)
                agent.acquire({{1, 0, 3}}, nonsense.access(), i, false, now);
            agent.on_timer(now);
            agent.drain(actions);
            done += actions.size();
            for (const Action& a : actions) {
                if (auto* install = std::get_if<Install>(&a)) agent.on_installed(install->id, now);
                if (auto* u = std::get_if<Unprotect>(&a)) agent.on_installed(u->id, now);
                if (auto* find = std::get_if<FindTouched>(&a)) {
                    agent.on_found(find->id, 1, {{find->run.first, 1}}, now);
                }
                if (auto* take = std::get_if<Take>(&a)) {
                    std::vector<TakeResult> results(take->run.count);
                    for (auto& r : results) r.kind = static_cast<Taken>(nonsense.pick(4));
                    agent.on_taken(take->id, std::move(results), now);
                }
            }
        }
        CHECK(done > 0);
        CHECK(agent.stats().bad_messages > 0);
    }
}
