// A directory and agents with glue that does at once what is asked, for tests of single rules.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "mm/page_agent.h"
#include "mm/page_directory.h"

namespace gpr {

class Cluster {
public:
    struct Flight {
        NodeId from = 0, to = 0;
        bool to_directory = false;
        Message message;
    };
    struct Member {
        std::unique_ptr<PageAgent> agent;
        std::map<PageKey, uint64_t> memory;
        std::set<PageKey> writable, pinned, absent;
        std::vector<Install> installs;
        std::vector<PageKey> wakes;
        std::vector<AcquireDone> acquired;
        std::vector<Anchored> anchored;
        std::vector<Take> takes;
    };

    explicit Cluster(unsigned nodes, DirectoryOptions options = {}) : directory(options) {
        members.resize(nodes);
        for (unsigned n = 0; n < nodes; ++n) {
            members[n].agent = std::make_unique<PageAgent>(static_cast<NodeId>(n));
        }
    }

    void add_object(ObjectId object, NodeId birth) {
        directory.add_object(object, birth);
        for (auto& m : members) m.agent->add_object(object, birth);
    }
    void drop_everywhere(ObjectId object, uint64_t first, uint64_t count) {
        directory.drop(object, first, count);
        for (auto& m : members) {
            m.agent->drop(object, first, count);
            for (uint64_t i = first; i < first + count; ++i) {
                m.memory.erase({object, i});
                m.writable.erase({object, i});
            }
        }
    }

    void copy_object(ObjectId from, ObjectId to) {
        directory.copy_object(from, to);
        for (auto& m : members) {
            m.agent->copy_object(from, to);
            for (const auto& [key, value] : std::map(m.memory)) {
                if (key.object == from) m.memory[{to, key.index}] = value;
            }
            for (PageKey key : std::set(m.writable)) {
                if (key.object == from) m.writable.insert({to, key.index});
            }
        }
    }

    // Carries out actions and delivers messages until nothing moves.
    void run() {
        do {
            collect_actions();
            while (!flights.empty()) {
                const Flight f = flights.front();
                flights.pop_front();
                deliver(f);
                collect_actions();
            }
        } while (!flights.empty());
    }
    // Moves actions of all cores into `flights` and the members' records.
    void collect_actions() {
        std::vector<Action> actions;
        for (bool more = true; more;) {
            more = false;
            directory.drain(actions);
            for (Action& a : actions) {
                if (auto* s = std::get_if<SendMessage>(&a)) {
                    flights.push_back({0, s->to, false, std::move(s->message)});
                } else {
                    collected.push_back(std::get<CollectDone>(a));
                }
            }
            for (unsigned n = 0; n < members.size(); ++n) {
                members[n].agent->drain(actions);
                more |= !actions.empty();
                for (Action& a : actions) perform(static_cast<NodeId>(n), a);
            }
        }
    }
    void deliver(const Flight& f) {
        delivered.push_back(f);
        if (f.to_directory) {
            directory.on_message(f.from, f.message, now);
        } else {
            members[f.to].agent->on_message(f.message, now);
        }
    }

    void fault(unsigned n, PageKey key, Access access, Tid tid, uint32_t ahead = 0) {
        members[n].agent->on_fault({key, access, tid, ahead, 0, ahead}, now);
        run();
    }
    // Time passes beyond every hold.
    void pass_holds() {
        now += 1'000'000;
        for (auto& m : members) m.agent->on_timer(now);
        run();
    }
    Presence presence(unsigned n, PageKey key) { return members[n].agent->presence(key); }

    template <class Body>
    unsigned count() const {
        unsigned found = 0;
        for (const Flight& f : delivered) found += std::holds_alternative<Body>(f.message.body);
        return found;
    }
    template <class Body>
    const Body& last() const {
        for (size_t i = delivered.size(); i > 0; --i) {
            if (auto* body = std::get_if<Body>(&delivered[i - 1].message.body)) return *body;
        }
        throw std::runtime_error("no such message was delivered");
    }

    PageDirectory directory;
    std::vector<Member> members;
    std::deque<Flight> flights;
    std::vector<Flight> delivered;
    std::vector<CollectDone> collected;
    uint64_t now = 1'000'000'000;

private:
    void perform(NodeId n, Action& action) {
        Member& m = members[n];
        if (auto* i = std::get_if<Install>(&action)) {
            for (uint32_t p = 0; p < i->run.count; ++p) {
                const PageContent& c = i->contents[p];
                m.memory[i->run[p]] =
                    c.bytes ? *reinterpret_cast<const uint64_t*>(c.bytes.get()) : 0;
                if (i->presence == Presence::exclusive) m.writable.insert(i->run[p]);
            }
            m.installs.push_back(*i);
            m.agent->on_installed(i->id, now);
        } else if (auto* u = std::get_if<Unprotect>(&action)) {
            for (uint32_t p = 0; p < u->run.count; ++p) m.writable.insert(u->run[p]);
            m.agent->on_installed(u->id, now);
        } else if (auto* t = std::get_if<Take>(&action)) {
            m.takes.push_back(*t);
            m.agent->on_taken(t->id, take(m, *t), now);
        } else if (auto* f = std::get_if<FindTouched>(&action)) {
            find_touched(m, *f);
        } else if (auto* s = std::get_if<SendMessage>(&action)) {
            flights.push_back({n, s->to, true, std::move(s->message)});
        } else if (auto* w = std::get_if<Wake>(&action)) {
            m.wakes.push_back(w->key);
        } else if (auto* d = std::get_if<AcquireDone>(&action)) {
            m.acquired.push_back(*d);
        } else {
            m.anchored.push_back(std::get<Anchored>(action));
        }
    }
    void find_touched(Member& m, const FindTouched& f) {
        std::vector<PageSpan> touched;
        const uint64_t end = f.run.first + f.run.count;
        auto it = m.memory.lower_bound({f.run.object, f.run.first});
        for (; it != m.memory.end() && it->first < PageKey{f.run.object, end}; ++it) {
            if (touched.size() == max_touched_spans) break;
            touched.push_back({it->first.index, 1});
        }
        const bool all = it == m.memory.end() || !(it->first < PageKey{f.run.object, end});
        m.agent->on_found(f.id, (all ? end : it->first.index) - f.run.first, touched, now);
    }
    static std::vector<TakeResult> take(Member& m, const Take& t) {
        std::vector<TakeResult> results(t.run.count);
        for (uint32_t p = 0; p < t.run.count; ++p) {
            const PageKey key = t.run[p];
            if (m.absent.contains(key)) {
                results[p].kind = Taken::absent;
            } else if (!m.memory.contains(key)) {
                results[p].kind = Taken::zero;
            } else if (m.pinned.contains(key)) {
                results[p].kind = Taken::pinned;
            } else {
                auto page = std::make_shared<std::array<uint64_t, 512>>();
                page->front() = m.memory[key];
                const auto* bytes = reinterpret_cast<const std::byte*>(page->data());
                results[p] = {Taken::data, {page, bytes}};
                m.writable.erase(key);
                if (t.leave == Presence::none) m.memory.erase(key);
            }
        }
        return results;
    }
};

}  // namespace gpr
