// What PageAgent does about one page: its entry, and the steps of settle().
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/address.h"
#include "base/result.h"
#include "mm/page_agent_core.h"

namespace gpr {

namespace {

// An entry: bits 0-1 presence + 1 (0: as born), bit 2 has a Busy, bits 28-63 the version.
constexpr unsigned version_shift = 64 - version_bits;

// Limits the memory of kept pages, one for each marker.
constexpr size_t most_markers = 512;

bool enough(Presence presence, Access access) {
    return presence == Presence::exclusive ||
           (presence == Presence::shared && access == Access::read);
}

}  // namespace

PageAgent::Core::Object* PageAgent::Core::object_of(ObjectId object) {
    auto it = objects.find(object);
    return it == objects.end() ? nullptr : &it->second;
}

PageAgent::Core::State PageAgent::Core::state(const Object& o, uint64_t index) const {
    const uint64_t entry = o.table.get(index) & ~busy_bit;
    const uint32_t generation = o.table.generation(index);
    if (entry == 0) {
        const bool ours = o.birth == self;
        return {ours ? Presence::exclusive : Presence::none, make_epoch(generation, 0), ours};
    }
    return {static_cast<Presence>((entry & 3) - 1), make_epoch(generation, entry >> version_shift),
            false};
}

void PageAgent::Core::set_state(Object& o, uint64_t index, Presence presence, Epoch epoch) {
    const uint64_t busy_now = o.table.get(index) & busy_bit;
    o.table.set(index, (static_cast<uint64_t>(presence) + 1) | busy_now |
                           (version_of(epoch) << version_shift));
}

PageAgent::Core::Busy* PageAgent::Core::find_busy(PageKey key) { return busy.find(key); }

PageAgent::Core::Busy& PageAgent::Core::make_busy(Object& o, PageKey key) {
    if (Busy* known = busy.find(key)) return *known;
    Busy& b = busy.add(key);
    b.key = key;
    o.table.set(key.index, o.table.get(key.index) | busy_bit);
    return b;
}

void PageAgent::Core::free_if_idle(Object& o, Busy& b) {
    if (!b.waiters.empty() || !b.holds.empty() || b.requested || b.recall || !b.grants.empty() ||
        b.operation != Operation::none || b.pinned_round || b.withdrawn) {
        return;
    }
    const PageKey key = b.key;
    o.table.set(key.index, o.table.get(key.index) & ~busy_bit);
    busy.erase(key);
}

// May free b.
void PageAgent::Core::settle(Object& o, Busy& b) {
    if (b.operation != Operation::none) return;
    if (b.kept) {
        if (b.waiters.empty() && !b.recall) return;
        b.kept = false;
    }
    if (apply_grants(o, b)) return;
    if (serve_waiters(o, b, false)) return;
    if (b.recall && answer_recall(o, b)) return;
    if (!b.waiters.empty()) ask(o, b);
    free_if_idle(o, b);
}

// True if an operation began.
bool PageAgent::Core::apply_grants(Object& o, Busy& b) {
    for (size_t i = 0; i < b.grants.size();) {
        PageGrant& grant = b.grants[i];
        const State s = state(o, b.key.index);
        const bool keep = grant.content.kind == ContentKind::none;
        const bool newer = compare_epochs(grant.epoch, s.epoch) > 0;
        const bool is_next = grant.epoch == next_version(s.epoch);
        if (keep && b.withdrawn && is_next) {
            // The grant crossed our push, which the directory then did not accept. A later one is
            // for what others have written since.
            grant.content = *b.withdrawn;
            continue;
        }
        // It grants only a right, to content that is still on its way: wait for that.
        if (newer && keep && (s.presence != Presence::shared || !is_next)) {
            ++i;
            continue;
        }
        PageGrant taken = std::move(grant);
        b.grants.erase(b.grants.begin() + static_cast<ptrdiff_t>(i));
        if (!newer || (!keep && s.presence != Presence::none)) {
            ++(newer ? stats.bad_messages : stats.late_messages);
            if (taken.collect) reports.acknowledge(taken.collect);
            continue;
        }
        return start_grant(o, b, taken);
    }
    return false;
}

bool PageAgent::Core::start_grant(Object& o, Busy& b, PageGrant& grant) {
    set_state(o, b.key.index, grant.presence, grant.epoch);
    b.requested = false;
    b.pinned_round.reset();
    forget_withdrawn(b);
    b.install_tid = grant.tid;
    b.install_collect = grant.collect;
    if (grant.content.kind == ContentKind::none) {
        ++stats.upgrades;
        operations.unprotect(b);
    } else {
        ++stats.pages_in;
        operations.install(b, grant.presence, std::move(grant.content));
    }
    return true;
}

// True if an operation began. woken: an install has just woken the threads.
bool PageAgent::Core::serve_waiters(Object& o, Busy& b, bool woken) {
    if (b.waiters.empty()) return false;
    const State s = state(o, b.key.index);
    if (s.untouched && !woken) {
        operations.install(b, Presence::exclusive, {ContentKind::zero, nullptr});
        return true;
    }
    bool wake = false;
    for (size_t i = 0; i < b.waiters.size();) {
        const Waiter waiter = b.waiters[i];
        if (!enough(s.presence, waiter.access)) {
            ++i;
            continue;
        }
        b.waiters.erase(b.waiters.begin() + static_cast<ptrdiff_t>(i));
        wake |= waiter.actor < (1ULL << 32);
        satisfied(b, waiter);
    }
    if (wake && !woken) out.add(Wake{b.key});
    return false;
}

// True if a take began. A recall that does not match what we have now is either late (we gave the
// page up unasked meanwhile, which answers it) or early (it overtook the grant).
bool PageAgent::Core::answer_recall(Object& o, Busy& b) {
    const PageRecall r = *b.recall;
    const State s = state(o, b.key.index);
    const int64_t order = compare_epochs(r.epoch, s.epoch);
    if (order == 0 && b.withdrawn) {
        reports.surrender(b.key, r, Presence::none, r.want_data ? *b.withdrawn : PageContent{});
        forget_withdrawn(b);
        b.recall.reset();
        return false;
    }
    if (order < 0 || (order == 0 && s.presence == Presence::none) || b.pinned_round == r.round) {
        ++stats.late_messages;
        b.recall.reset();
        return false;
    }
    if (r.optional && (order > 0 || !b.waiters.empty() || actors.blocked_until(b, nullptr) > now)) {
        reports.surrender(b.key, r, s.presence, {ContentKind::declined, nullptr});
        b.recall.reset();
        return false;
    }
    if (order > 0) return false;
    const bool only_copy = s.presence == Presence::shared && r.leave == Presence::shared;
    if (!only_copy) {
        const uint64_t until = actors.blocked_until(b, &r.for_whom);
        if (until > now) {
            defer(b, until);
            return false;
        }
    }
    b.taking = r;
    b.pinned_round.reset();
    b.pushing.reset();
    b.recall.reset();
    start_take(b, s.presence, r.leave, r.want_data);
    return true;
}

// Requests from the directory what the waiters need, unless that has been requested.
void PageAgent::Core::ask(Object& o, Busy& b) {
    Access access = Access::read;
    const Actor* oldest = nullptr;
    for (const Waiter& w : b.waiters) {
        const Actor* a = actors.find(w.actor);
        if (!a) continue;
        access = std::max(access, w.access);
        if (!oldest || a->age < oldest->age) oldest = a;
    }
    if (!oldest) return b.waiters.clear();
    if (b.requested && b.requested_access >= access && b.requested_age <= oldest->age) return;
    b.requested = true;
    b.requested_access = access;
    b.requested_age = oldest->age;
    ++stats.requests;
    const State s = state(o, b.key.index);
    const Tid tid = oldest->tid;
    const uint64_t age = oldest->age;
    auto& request = out.extend_message<Request>(
        directory_node, b.key, false, clock,
        [&](const Request& r) {
            return r.must == r.run.count && r.access == access && r.have == s.presence &&
                   r.tid == tid && r.age == age;
        },
        [&] { return Request{{}, 0, access, s.presence, tid, age, {}}; });
    request.must = request.run.count;
    request.have_epochs.push_back(s.epoch);
    if (ahead > 0) ask_ahead(o, request);
}

// Extends the request over the following pages that are in the same state and not busy.
void PageAgent::Core::ask_ahead(Object& o, Request& request) {
    uint32_t left = std::min(ahead, max_run_pages - request.run.count);
    for (; left > 0; --left) {
        const uint64_t index = request.run.first + request.run.count;
        if (index >= max_object_pages || (o.table.get(index) & busy_bit)) return;
        const State s = state(o, index);
        if (s.presence != request.have) return;
        ++request.run.count;
        request.have_epochs.push_back(s.epoch);
    }
}

// Requests pages of a stream that are not here and not busy. They get no entry: if the directory or
// a holder declines, the thread's fault asks again.
void PageAgent::Core::ask_stream(Object& o, const Fault& fault, const Actor& a,
                                 const ReadAhead::Ask& ask) {
    for (uint32_t k = 0; k < ask.count; ++k) {
        const uint32_t i = ask.stride < 0 ? ask.count - 1 - k : k;
        const PageKey key{fault.key.object, ask.first + static_cast<uint64_t>(ask.stride) * i};
        if (o.table.get(key.index) & busy_bit) continue;
        const State s = state(o, key.index);
        if (enough(s.presence, ask.access)) continue;
        auto& request = out.extend_message<Request>(
            directory_node, key, false, clock,
            [&](const Request& r) {
                return r.have_epochs.size() == r.run.count && r.access == ask.access &&
                       r.have == s.presence && r.tid == a.tid && r.age == a.age &&
                       r.run.count < options.read_ahead.chunk;
            },
            [&] { return Request{{}, 0, ask.access, s.presence, a.tid, a.age, {}}; });
        request.have_epochs.push_back(s.epoch);
        ++stats.pages_ahead;
        if (i == ask.marker && fault.may_wait) add_marker(key);
    }
}

// Requests what the thread missed after this page the last time, in the same way. Only what it had
// then: a page that was refused, because its file ended before it, would come as soon as the file
// has grown, and show nothing of what is written there before the program looks.
void PageAgent::Core::ask_trail(const Object& o, const Fault& fault, const Actor& a) {
    auto is_missing = [this](const FaultTrails::Page& page) {
        const Object* its = object_of(page.key.object);
        if (!its || its->table.generation(page.key.index) != page.generation) return false;
        const uint64_t entry = its->table.get(page.key.index);
        return entry != 0 && !(entry & busy_bit) &&
               !enough(state(*its, page.key.index).presence, page.access);
    };
    const uint32_t generation = o.table.generation(fault.key.index);
    auto pages = trails.on_fault(fault.tid, {fault.key, fault.access, generation}, is_missing);
    std::ranges::sort(pages, {}, [](const FaultTrails::Page& page) { return page.key; });
    for (const FaultTrails::Page& page : pages) {
        const State s = state(*object_of(page.key.object), page.key.index);
        auto& request = out.extend_message<Request>(
            directory_node, page.key, false, clock,
            [&](const Request& r) {
                return r.must == 0 && r.lost && r.access == page.access && r.have == s.presence &&
                       r.tid == a.tid && r.age == a.age && r.run.count < options.read_ahead.chunk;
            },
            [&] { return Request{{}, 0, page.access, s.presence, a.tid, a.age, {}, true}; });
        request.have_epochs.push_back(s.epoch);
        ++stats.pages_ahead;
    }
}

void PageAgent::Core::add_marker(PageKey key) {
    if (!may_keep || !markers.insert(key).second) return;
    marker_order.push_back(key);
    if (marker_order.size() <= most_markers) return;
    const PageKey oldest = marker_order.front();
    marker_order.pop_front();
    markers.erase(oldest);
    put_in(oldest);
}

// A grant has come. If it is for a marker that nobody waits for, it is treated as still on its way:
// whatever happens to the page next applies it.
void PageAgent::Core::keep_or_settle(Object& o, Busy& b) {
    b.kept = false;
    if (markers.contains(b.key) && b.grants.size() == 1 && b.waiters.empty() && !b.recall &&
        b.operation == Operation::none) {
        PageGrant& grant = b.grants.front();
        const State s = state(o, b.key.index);
        const bool newer = compare_epochs(grant.epoch, s.epoch) > 0;
        b.kept = newer && grant.tid == 0 && grant.collect == 0 && s.presence == Presence::none &&
                 grant.content.kind != ContentKind::none;
        if (b.kept && grant.content.kind == ContentKind::data) {
            // A copy, because the frame that contains it is much larger.
            std::shared_ptr<std::byte[]> page(new std::byte[page_size]);
            std::memcpy(page.get(), grant.content.bytes.get(), page_size);
            grant.content.bytes = {page, page.get()};
        }
        stats.markers_kept += b.kept;
    }
    settle(o, b);
}

void PageAgent::Core::put_in(PageKey key) {
    Object* o = object_of(key.object);
    Busy* b = o ? find_busy(key) : nullptr;
    if (!b || !b->kept) return;
    b->kept = false;
    settle(*o, *b);
}

void PageAgent::Core::start_take(Busy& b, Presence had, Presence leave, bool want_data) {
    operations.take(b, had, leave, want_data);
    if (had != leave) actors.lose_holds(b, leave);
}

void PageAgent::Core::finish_install(Object& o, Busy& b) {
    b.operation = Operation::none;
    const Tid tid = std::exchange(b.install_tid, 0);
    if (const uint32_t collect = std::exchange(b.install_collect, 0)) reports.acknowledge(collect);
    if (!b.dropped) {
        // An untouched page of ours is present now; it still needs no entry.
        const bool nobody = b.waiters.empty();
        // Waiters that came after the install was requested were not woken by it.
        const bool late =
            std::any_of(b.waiters.begin(), b.waiters.end(), [](const Waiter& w) { return w.late; });
        if (late) out.add(Wake{b.key});
        serve_waiters(o, b, true);
        if (tid != 0 && nobody) {
            Actor& a = actors.thread(tid);
            ++a.grants;
            a.last_grant_ns = now;
            hold(b, a, Access::read);
        }
    }
    settle(o, b);
}

void PageAgent::Core::finish_take(Object& o, Busy& b, TakeResult& result) {
    b.operation = Operation::none;
    const std::optional<PagePush> push = std::exchange(b.pushing, std::nullopt);
    if (b.dropped) return settle(o, b);
    const State s = state(o, b.key.index);
    if (result.kind == Taken::pinned || result.kind == Taken::absent) {
        bool pinned = result.kind == Taken::pinned;
        if (!push) {
            reports.surrender(b.key, b.taking, s.presence,
                              {pinned ? ContentKind::pinned : ContentKind::absent, nullptr});
            b.pinned_round = b.taking.round;
        }
        return settle(o, b);
    }
    PageContent content;
    if (result.kind == Taken::zero) content.kind = ContentKind::zero;
    if (result.kind == Taken::data) content = {ContentKind::data, std::move(result.bytes)};
    if (push) {
        finish_push(o, b, *push, std::move(content));
        return settle(o, b);
    }
    // A page that was never touched leaves nothing behind.
    const Presence left = s.presence == Presence::exclusive && result.kind == Taken::zero
                              ? Presence::none
                              : b.taking.leave;
    if (s.presence == Presence::exclusive && left == Presence::shared) {
        set_state(o, b.key.index, Presence::shared, next_version(s.epoch));
    } else if (left == Presence::none) {
        set_state(o, b.key.index, Presence::none, s.epoch);
    }
    ++stats.pages_out;
    reports.surrender(b.key, b.taking, left, std::move(content));
    settle(o, b);
}

void PageAgent::Core::finish_push(Object& o, Busy& b, const PagePush& push, PageContent content) {
    const State s = state(o, b.key.index);
    const bool shared = s.presence == Presence::shared;
    Presence left = push.access == Access::write ? Presence::none : Presence::shared;
    if (!shared && content.kind == ContentKind::zero) left = Presence::none;
    if (left == Presence::none) {
        set_state(o, b.key.index, Presence::none, s.epoch);
    } else if (!shared) {
        set_state(o, b.key.index, Presence::shared, next_version(s.epoch));
    }
    if (shared && left == Presence::none) {
        // Other nodes have the content: only the right is sent.
        b.withdrawn = std::exchange(content, {});
        ++withdrawn_pages;
        ++stats.rights_given;
    } else {
        ++stats.pages_out;
    }
    const Presence grant = left == Presence::none ? Presence::exclusive : Presence::shared;
    auto& message = out.extend_message<Push>(
        directory_node, b.key, false, clock,
        [&](const Push& p) { return p.to == push.to && p.left == left && p.tid == push.tid; },
        [&] { return Push{{}, push.to, left, grant, push.tid, {}, {}}; });
    message.epochs.push_back(s.epoch);
    message.contents.push_back(std::move(content));
    ++pushed;
}

void PageAgent::Core::forget_withdrawn(Busy& b) {
    if (!b.withdrawn) return;
    b.withdrawn.reset();
    --withdrawn_pages;
}

}  // namespace gpr
