// What PageAgent does for actors: they get pages, hold them for a while, and let them go.
#include <algorithm>

#include "base/result.h"
#include "mm/page_agent_core.h"

namespace gpr {

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
    Actor* found = actors.find(waiter.actor);
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

// Forgets holds that have ended, so that idle pages cost only their eight bytes. A few at each
// event, because one acquire may hold a hundred thousand pages. Whether a page is held depends on
// held_until() only.
void PageAgent::Core::expire_holds() {
    while (!finished.empty() && finished.front().first <= now) {
        const ActorId id = finished.front().second;
        finished.pop_front();
        end_acquire(id);
    }
    constexpr int most = 32;
    for (int i = 0; i < most && !expiring.empty() && expiring.front().first <= now; i++) {
        const PageKey key = expiring.front().second;
        expiring.pop_front();
        Busy* b = find_busy(key);
        Object* o = object_of(key.object);
        if (!b || !o) continue;
        std::erase_if(b->holds,
                      [&](const Hold& h) { return actors.held_until(*b, h, nullptr) <= now; });
        b->hold_queued = !b->holds.empty();
        if (b->hold_queued) expiring.emplace_back(now + options.hold_ns, key);
        settle(*o, *b);
    }
}

void PageAgent::Core::end_acquire(ActorId id) {
    Actor* a = actors.find(id);
    if (!a) return;
    const std::vector<PageRun> runs = std::move(a->runs);
    auto by_cookie = acquires.find(a->cookie);
    if (by_cookie != acquires.end() && by_cookie->second == id) acquires.erase(by_cookie);
    actors.erase(id);
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
