// Who wants pages on this node, since when, and what may not be taken from them yet.
#include <algorithm>

#include "base/result.h"
#include "mm/page_agent_core.h"

namespace gpr {

namespace {

// So many pages in a row without losing one, and an instruction must have ended: none needs more.
constexpr uint32_t most_instruction_pages = 16;

}  // namespace

PageAgent::Core::Actor& PageAgent::Core::thread(Tid tid) {
    const ActorId id = static_cast<uint32_t>(tid);
    Actor& a = actors[id];
    if (a.instruction == 0) {
        a.id = id;
        a.tid = tid;
        a.instruction = next_instruction++;
    }
    return a;
}

PageAgent::Core::Actor* PageAgent::Core::find_actor(ActorId id) {
    auto it = actors.find(id);
    return it == actors.end() ? nullptr : &it->second;
}

// A new fault of the thread: the next page of the same instruction, or a new instruction.
void PageAgent::Core::note_fault(Actor& a, const Fault& fault, Presence presence) {
    if (a.age != 0 && !a.waiting && now > a.last_grant_ns + options.hold_ns) end_instruction(a);
    // Where it waited before, if it did, its waiter stays: a message may be late, and one wake-up
    // too many harms nobody.
    if (a.age == 0) a.age = ++clock;
    GroupPage* known = nullptr;
    for (uint32_t i = 0; i < a.group_size; ++i) {
        if (a.group[i].key == fault.key) known = &a.group[i];
    }
    if (known) {
        // It had the page and lost it. A write after a granted read is no such sign.
        if (known->access >= fault.access || presence == Presence::none) {
            a.escalated = true;
            a.in_row = 1;
        }
        known->access = std::max(known->access, fault.access);
    } else {
        if (presence == Presence::none && ++a.in_row > most_instruction_pages) {
            end_instruction(a);
            a.age = ++clock;
            a.in_row = 1;
        }
        a.group[a.group_next] = {fault.key, fault.access};
        a.group_next = (a.group_next + 1) % a.group.size();
        a.group_size = std::min<uint32_t>(a.group_size + 1, a.group.size());
        if (++a.new_pages > a.group.size()) {
            a.age = ++clock;
            a.new_pages = 0;
        }
    }
    a.waiting = true;
    a.wait_key = fault.key;
    recheck_deferred = true;
}

void PageAgent::Core::end_instruction(Actor& a) {
    a.instruction = next_instruction++;
    a.age = 0;
    a.escalated = false;
    a.group_size = a.group_next = a.new_pages = a.in_row = 0;
    recheck_deferred = true;
}

void PageAgent::Core::stop_waiting(Actor& a) {
    if (!a.waiting) return;
    a.waiting = false;
    if (Busy* b = find_busy(a.wait_key)) {
        std::erase_if(b->waiters, [&](const Waiter& w) { return w.actor == a.id; });
    }
}

void PageAgent::Core::hold(Busy& b, Actor& a, Access access) {
    std::erase_if(b.holds, [&](const Hold& h) { return h.actor == a.id; });
    b.holds.push_back({a.id, a.instruction, a.grants, access});
    if (!b.hold_queued) {
        b.hold_queued = true;
        expiring.emplace_back(now + options.hold_ns, b.key);
    }
}

void PageAgent::Core::satisfied(Busy& b, Waiter waiter) {
    Actor* found = find_actor(waiter.actor);
    if (!found) return;
    Actor& a = *found;
    recheck_deferred = true;
    if (a.tid != 0) {
        if (a.wait_key == b.key) a.waiting = false;
        ++a.grants;
        a.last_grant_ns = now;
        hold(b, a, waiter.access);
        return;
    }
    hold(b, a, waiter.access);
    if (--a.missing == 0) finish_acquire(a);
}

void PageAgent::Core::finish_acquire(Actor& a) {
    a.done = true;
    a.last_grant_ns = now;
    out.add(AcquireDone{a.cookie});
    if (a.hold_until_release) return;
    acquires.erase(a.cookie);
    finished.emplace_back(now + options.hold_ns, a.id);
}

// Until when the hold stands against the one who recalls; `by` null: against anyone.
uint64_t PageAgent::Core::held_until(const Busy& b, const Hold& h, const Seniority* by) {
    const Actor* a = find_actor(h.actor);
    if (!a || a->instruction != h.instruction) return 0;
    const bool older = by && *by < Seniority{a->age, self, a->tid};
    const uint64_t timed = a->last_grant_ns + options.hold_ns;
    if (a->tid == 0) {
        if (!a->done) return older ? 0 : never;
        return a->hold_until_release ? never : timed;
    }
    if (a->waiting) {
        // Waiting for this very page means for more access: the directory serves that in turn.
        if (!a->escalated || a->wait_key == b.key) return 0;
        return older ? 0 : never;
    }
    if (!a->escalated && h.grant != a->grants) return 0;
    return timed;
}

uint64_t PageAgent::Core::blocked_until(const Busy& b, const Seniority* by) {
    uint64_t until = 0;
    for (const Hold& h : b.holds) until = std::max(until, held_until(b, h, by));
    return until;
}

// The page went, or became read-only.
void PageAgent::Core::lose_holds(Busy& b, Presence left) {
    std::erase_if(b.holds, [&](const Hold& h) {
        if (left == Presence::shared && h.access == Access::read) return false;
        Actor* a = find_actor(h.actor);
        if (a && a->instruction == h.instruction) a->in_row = 0;
        if (a && a->tid == 0 && !a->done) {
            ++a->missing;
            b.waiters.push_back({h.actor, h.access});
        }
        return true;
    });
}

void PageAgent::Core::defer(Busy& b, uint64_t retry_ns) {
    if (b.deferred) {
        for (Deferred& d : deferred) {
            if (d.key == b.key) d.retry_ns = retry_ns;
        }
        return;
    }
    b.deferred = true;
    ++stats.recalls_deferred;
    deferred.push_back({b.key, retry_ns});
}

void PageAgent::Core::poke_deferred() {
    recheck_deferred = false;
    std::vector<Deferred> before;
    before.swap(deferred);
    for (const Deferred& d : before) {
        Busy* b = find_busy(d.key);
        if (!b) continue;
        b->deferred = false;
        Object* o = object_of(d.key.object);
        if (o) settle(*o, *b);
    }
}

// Holds that have ended are forgotten, so that idle pages cost their eight bytes and no more.
void PageAgent::Core::expire_holds() {
    while (!finished.empty() && finished.front().first <= now) {
        const ActorId id = finished.front().second;
        finished.pop_front();
        end_acquire(id);
    }
    while (!expiring.empty() && expiring.front().first <= now) {
        const PageKey key = expiring.front().second;
        expiring.pop_front();
        Busy* b = find_busy(key);
        Object* o = object_of(key.object);
        if (!b || !o) continue;
        std::erase_if(b->holds, [&](const Hold& h) { return held_until(*b, h, nullptr) <= now; });
        b->hold_queued = !b->holds.empty();
        if (b->hold_queued) expiring.emplace_back(now + options.hold_ns, key);
        settle(*o, *b);
    }
}

void PageAgent::Core::end_acquire(ActorId id) {
    auto it = actors.find(id);
    if (it == actors.end()) return;
    const std::vector<PageRun> runs = std::move(it->second.runs);
    auto by_cookie = acquires.find(it->second.cookie);
    if (by_cookie != acquires.end() && by_cookie->second == id) acquires.erase(by_cookie);
    actors.erase(it);
    recheck_deferred = true;
    for (const PageRun& run : runs) {
        Object* o = object_of(run.object);
        for (uint32_t i = 0; o && i < run.count; ++i) {
            Busy* b = find_busy(run[i]);
            if (!b) continue;
            std::erase_if(b->waiters, [&](const Waiter& w) { return w.actor == id; });
            std::erase_if(b->holds, [&](const Hold& h) { return h.actor == id; });
            settle(*o, *b);
        }
    }
}

}  // namespace gpr
