#include "mm/page_agent.h"

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "mm/page_agent_core.h"

namespace gpr {

namespace {

// Messages come from a peer: lengths and indices are checked once, here.
bool sane(const PageRun& run) {
    return run.count > 0 && run.count <= max_run_pages && run.first < max_object_pages &&
           run.count <= max_object_pages - run.first;
}

// Withdrawn copies that are kept because they may still be asked for, a page each.
constexpr size_t most_withdrawn = 256;

}  // namespace

PageAgent::PageAgent(NodeId self, AgentOptions options) : core_(std::make_unique<Core>()) {
    core_->self = self;
    core_->options = options;
    core_->read_ahead = ReadAhead(options.read_ahead);
}

PageAgent::~PageAgent() = default;

void PageAgent::add_object(ObjectId object, NodeId birth) { core_->objects[object].birth = birth; }

void PageAgent::erase_object(ObjectId object) { core_->forget_object(object); }

void PageAgent::drop(ObjectId object, uint64_t first, uint64_t count) {
    Core& c = *core_;
    Core::Object* o = c.object_of(object);
    if (!o || first >= max_object_pages) return;
    std::vector<PageKey> keys;
    if (!c.busy.empty()) {
        o->table.for_each(first, count, [&](uint64_t index, uint64_t&) {
            if (c.find_busy({object, index})) keys.push_back({object, index});
        });
    }
    o->table.drop(first, count);
    for (const PageKey& key : keys) {
        Core::Busy& b = *c.find_busy(key);
        o->table.set(key.index, busy_bit);  // as born, with a Busy
        c.drop_busy(*o, b);
    }
    c.end();
}

void PageAgent::on_fault(const Fault& fault, uint64_t now_ns) {
    Core& c = *core_;
    c.begin(now_ns);
    ++c.stats.faults;
    Core::Object* o = c.object_of(fault.key.object);
    if (!o || fault.key.index >= max_object_pages) {
        ++c.stats.bad_messages;
        return c.end();
    }
    const Core::State s = c.state(*o, fault.key.index);
    Core::Actor& a = c.actors.thread(fault.tid);
    Core::Busy& b = c.make_busy(*o, fault.key);
    const bool kept = b.kept;
    bool goes_on = false;
    auto waiting = std::find_if(b.waiters.begin(), b.waiters.end(),
                                [&](const Core::Waiter& w) { return w.actor == a.id; });
    if (waiting != b.waiters.end()) {
        waiting->access = std::max(waiting->access, fault.access);
    } else {
        const bool enough = s.presence == Presence::exclusive ||
                            (s.presence == Presence::shared && fault.access == Access::read);
        // If the page has arrived meanwhile, this is a repeated message and no new fault.
        if (!enough || s.untouched || b.operation != Core::Operation::none) {
            c.actors.note_fault(a, fault, s.presence);
            goes_on = true;
        }
        b.waiters.push_back({a.id, fault.access, b.operation == Core::Operation::install});
    }
    c.ahead = static_cast<uint32_t>(std::min<uint64_t>(fault.ahead, fault.pages_after));
    c.settle(*o, b);
    c.ahead = 0;
    if (goes_on) {
        c.stats.markers_reached += kept;
        const auto& asks =
            c.read_ahead.on_fault({fault.tid, fault.key, fault.access, kept, fault.pages_before,
                                   fault.pages_after, fault.ahead});
        for (const ReadAhead::Ask& ask : asks) c.ask_stream(*o, fault, a, ask);
        if (fault.has_trail) c.ask_trail(*o, fault, a);
    }
    c.end();
}

void PageAgent::let_pages_wait(bool allowed, uint64_t now_ns) {
    Core& c = *core_;
    c.begin(now_ns);
    c.may_keep = allowed;
    if (!allowed) {
        c.markers.clear();
        for (const PageKey& key : std::exchange(c.marker_order, {})) c.put_in(key);
    }
    c.end();
}

void PageAgent::on_message(Message message, uint64_t now_ns) {
    Core& c = *core_;
    c.begin(now_ns);
    c.clock = std::max(c.clock, message.clock);
    if (auto* grant = std::get_if<Grant>(&message.body)) {
        c.handle(*grant);
    } else if (auto* recall = std::get_if<Recall>(&message.body)) {
        c.handle(*recall);
    } else if (auto* refused = std::get_if<Refused>(&message.body)) {
        c.handle(*refused);
    } else if (auto* census = std::get_if<Census>(&message.body)) {
        c.handle(*census);
    } else {
        ++c.stats.bad_messages;
    }
    c.end();
}

void PageAgent::on_taken(uint64_t id, std::vector<TakeResult> results, uint64_t now_ns) {
    Core& c = *core_;
    c.begin(now_ns);
    const PageRun run = c.operations.finish(id);
    GPR_ASSERT(run.count == results.size());
    for (uint32_t i = 0; i < run.count; ++i) {
        Core::Object* o = c.object_of(run.object);
        Core::Busy* b = o ? c.find_busy(run[i]) : nullptr;
        if (b && b->operation_id == id) c.finish_take(*o, *b, results[i]);
    }
    c.end();
}

void PageAgent::on_installed(uint64_t id, uint64_t now_ns) {
    Core& c = *core_;
    c.begin(now_ns);
    const PageRun run = c.operations.finish(id);
    for (uint32_t i = 0; i < run.count; ++i) {
        Core::Object* o = c.object_of(run.object);
        Core::Busy* b = o ? c.find_busy(run[i]) : nullptr;
        if (b && b->operation_id == id) c.finish_install(*o, *b);
    }
    c.end();
}

void PageAgent::on_progress(Tid tid, uint64_t now_ns) {
    Core& c = *core_;
    c.begin(now_ns);
    if (Core::Actor* a = c.actors.find(static_cast<uint32_t>(tid))) {
        c.stop_waiting(*a);
        c.actors.end_instruction(*a);
    }
    c.end();
}

void PageAgent::on_past_progress(Tid tid, uint64_t now_ns) {
    Core& c = *core_;
    c.begin(now_ns);
    Core::Actor* a = c.actors.find(static_cast<uint32_t>(tid));
    if (a && !a->waiting) c.actors.end_instruction(*a);
    c.end();
}

void PageAgent::on_thread_gone(Tid tid, uint64_t now_ns) {
    on_progress(tid, now_ns);
    core_->actors.erase(static_cast<uint32_t>(tid));
}

void PageAgent::forget_thread(Tid tid) { core_->trails.forget(tid); }

void PageAgent::on_timer(uint64_t now_ns) {
    core_->begin(now_ns);
    core_->recheck_deferred = true;
    core_->end();
}

uint64_t PageAgent::next_deadline() const {
    uint64_t deadline = never;
    for (const auto& d : core_->deferred) deadline = std::min(deadline, d.retry_ns);
    return deadline;
}

void PageAgent::acquire(std::vector<PageRun> runs, Access access, uint64_t cookie, bool hold,
                        uint64_t now_ns) {
    Core& c = *core_;
    c.begin(now_ns);
    GPR_ASSERT(!c.acquires.contains(cookie));
    Core::Actor& a = c.actors.begin_acquire();
    const ActorId id = a.id;
    a.runs = std::move(runs);
    a.access = access;
    a.cookie = cookie;
    a.hold_until_release = hold;
    c.acquires[cookie] = id;
    for (const PageRun& run : a.runs) a.missing += run.count;
    if (a.missing == 0) c.finish_acquire(a);
    for (const PageRun& run : std::vector<PageRun>(a.runs)) {
        Core::Object* o = c.object_of(run.object);
        GPR_ASSERT(o && run.first + run.count <= max_object_pages);
        for (uint32_t i = 0; i < run.count; ++i) {
            Core::Busy& b = c.make_busy(*o, run[i]);
            b.waiters.push_back({id, access});
            c.settle(*o, b);
        }
    }
    c.end();
}

void PageAgent::release(uint64_t cookie, uint64_t now_ns) {
    Core& c = *core_;
    c.begin(now_ns);
    auto it = c.acquires.find(cookie);
    if (it != c.acquires.end()) c.end_acquire(it->second);
    c.end();
}

bool PageAgent::give_away(PageKey key, NodeId to, Access access, Tid tid, uint64_t now_ns) {
    Core& c = *core_;
    c.begin(now_ns);
    Core::Object* o = c.object_of(key.object);
    if (!o || key.index >= max_object_pages || to == c.self || to >= max_nodes) return false;
    const Core::State s = c.state(*o, key.index);
    if (s.presence == Presence::none) return false;
    // Only the directory knows whether the other node has a copy, and it is asked only by the agent
    // on its own node, for which that costs nothing.
    const bool shared = s.presence == Presence::shared;
    if (shared && access == Access::read && c.self != directory_node) return false;
    if (shared && access == Access::write && c.withdrawn_pages >= most_withdrawn) return false;
    if (const Core::Busy* b = c.find_busy(key)) {
        if (b->operation != Core::Operation::none || b->recall || b->requested ||
            !b->grants.empty() || !b->waiters.empty() || b->pinned_round) {
            return false;
        }
        for (const Core::Hold& h : b->holds) {
            const bool own = h.actor == static_cast<uint32_t>(tid);
            if (!own && c.actors.held_until(*b, h, nullptr) > now_ns) return false;
        }
    }
    Core::Busy& b = c.make_busy(*o, key);
    b.pushing = Core::PagePush{to, tid, access};
    c.start_take(b, s.presence, access == Access::write ? Presence::none : Presence::shared, true);
    return true;
}

bool PageAgent::is_leaving(PageKey key) const {
    const Core::Busy* b = core_->find_busy(key);
    return b && b->pushing && b->operation == Core::Operation::take;
}

std::vector<PageKey> PageAgent::leaving(const ObjectTest& asked) const {
    std::vector<PageKey> keys;
    for (const auto& [key, b] : core_->busy) {
        if (is_leaving(key) && asked(key.object)) keys.push_back(key);
    }
    return keys;
}

Presence PageAgent::presence(PageKey key) const {
    const Core::Object* o = core_->object_of(key.object);
    return o && key.index < max_object_pages ? core_->state(*o, key.index).presence
                                             : Presence::none;
}

bool PageAgent::was_here(PageKey key) const {
    const Core::Object* o = core_->object_of(key.object);
    return o && key.index < max_object_pages && o->table.get(key.index) & ~busy_bit &&
           core_->state(*o, key.index).presence == Presence::none;
}

bool PageAgent::in_motion(PageKey key) const {
    const Core::Busy* b = core_->find_busy(key);
    return b && b->operation != Core::Operation::none;
}

bool PageAgent::is_arriving(PageKey key) const {
    const Core::Busy* b = core_->find_busy(key);
    if (!b) return false;
    if (b->operation == Core::Operation::install || !b->grants.empty()) return true;
    return b->requested && presence(key) == Presence::none;
}

std::vector<PageKey> PageAgent::arriving(const ObjectTest& asked) const {
    std::vector<PageKey> keys;
    for (const auto& [key, b] : core_->busy) {
        if (is_arriving(key) && asked(key.object)) keys.push_back(key);
    }
    return keys;
}

bool PageAgent::is_current(uint64_t id, PageKey key) const {
    const Core::Busy* b = core_->find_busy(key);
    return b && b->operation != Core::Operation::none && b->operation_id == id && !b->dropped;
}

const AgentStats& PageAgent::stats() const { return core_->stats; }

size_t PageAgent::memory_bytes() const {
    size_t bytes = core_->busy.memory_bytes() + core_->actors.size() * (sizeof(Core::Actor) + 32);
    for (const auto& [id, o] : core_->objects) bytes += sizeof(o) + o.table.memory_bytes();
    return bytes;
}

void PageAgent::drain(std::vector<Action>& into) { core_->out.drain(into); }

// Time must not run backwards, in whatever order the caller reads its clocks.
void PageAgent::Core::begin(uint64_t now_ns) {
    now = std::max(now, now_ns);
    expire_holds();
}

void PageAgent::Core::end() {
    while (recheck_deferred && !deferred.empty()) poke_deferred();
}

void PageAgent::Core::handle(Grant& grant) {
    Object* o = object_of(grant.run.object);
    if (!sane(grant.run) || grant.epochs.size() != grant.run.count ||
        grant.contents.size() != grant.run.count || grant.presence == Presence::none) {
        ++stats.bad_messages;
        return;
    }
    for (uint32_t i = 0; i < grant.run.count; ++i) {
        const PageKey key = grant.run[i];
        if (!o || generation_of(grant.epochs[i]) != o->table.generation(key.index)) {
            ++stats.late_messages;
            if (grant.collect) reports.acknowledge(grant.collect);
            continue;
        }
        Busy& b = make_busy(*o, key);
        b.grants.push_back({grant.epochs[i], grant.presence, grant.tid, grant.collect,
                            std::move(grant.contents[i])});
        keep_or_settle(*o, b);
    }
}

void PageAgent::Core::handle(const Recall& recall) {
    Object* o = object_of(recall.run.object);
    if (!sane(recall.run) || recall.epochs.size() != recall.run.count ||
        recall.leave == Presence::exclusive) {
        ++stats.bad_messages;
        return;
    }
    for (uint32_t i = 0; i < recall.run.count; ++i) {
        const PageKey key = recall.run[i];
        if (!o || generation_of(recall.epochs[i]) != o->table.generation(key.index)) {
            ++stats.late_messages;
            continue;
        }
        Busy& b = make_busy(*o, key);
        const bool older = b.recall && (compare_epochs(recall.epochs[i], b.recall->epoch) < 0 ||
                                        static_cast<int32_t>(recall.round - b.recall->round) < 0);
        if (!older) {
            Seniority who = recall.for_whom;
            bool optional = recall.optional;
            if (b.recall && b.recall->round == recall.round) {
                who = std::min(who, b.recall->for_whom);
                optional &= b.recall->optional;
            }
            b.recall = PageRecall{recall.epochs[i], recall.leave, recall.want_data,
                                  optional,         recall.round, who};
        }
        settle(*o, b);
    }
}

void PageAgent::Core::handle(const Refused& refused) {
    Object* o = object_of(refused.run.object);
    if (!sane(refused.run) || refused.epochs.size() != refused.run.count) {
        ++stats.bad_messages;
        return;
    }
    for (uint32_t i = 0; i < refused.run.count; ++i) {
        const PageKey key = refused.run[i];
        Busy* b = o && generation_of(refused.epochs[i]) == o->table.generation(key.index)
                      ? find_busy(key)
                      : nullptr;
        if (!b) continue;
        b->requested = false;
        refuse_waiters(*b, refused.anchor);
        b = find_busy(key);
        if (b) settle(*o, *b);
    }
}

// May free b.
void PageAgent::Core::refuse_waiters(Busy& b, NodeId anchor) {
    const PageKey key = b.key;
    for (const Waiter& w : std::exchange(b.waiters, {})) {
        Actor* a = actors.find(w.actor);
        if (!a) continue;
        if (a->tid != 0) {
            a->waiting = false;
            actors.end_instruction(*a);
            out.add(Anchored{key, anchor, a->tid});
        } else {
            out.add(AcquireDone{a->cookie, true, anchor});
            end_acquire(a->id);
        }
    }
}

void PageAgent::Core::drop_busy(Object& o, Busy& b) {
    actors.lose_holds(b, Presence::none);
    bool wake = false;
    std::erase_if(b.waiters, [&](const Waiter& w) {
        Actor* a = actors.find(w.actor);
        if (a && a->tid == 0) return false;  // still wants the page, in its new generation
        if (a && a->wait_key == b.key) a->waiting = false;
        return wake = true;
    });
    if (wake) out.add(Wake{b.key});
    b.requested = false;
    b.recall.reset();
    b.pinned_round.reset();
    forget_withdrawn(b);
    b.kept = false;
    for (const PageGrant& grant : std::exchange(b.grants, {})) {
        if (grant.collect) reports.acknowledge(grant.collect);
    }
    if (b.operation != Operation::none) b.dropped = true;
    recheck_deferred = true;
    settle(o, b);
}

void PageAgent::Core::forget_object(ObjectId object) {
    Object* o = object_of(object);
    if (!o) return;
    std::vector<PageKey> keys;
    if (!busy.empty()) {
        o->table.for_each(0, max_object_pages, [&](uint64_t index, uint64_t&) {
            if (find_busy({object, index})) keys.push_back({object, index});
        });
    }
    for (const PageKey& key : keys) {
        Busy* b = find_busy(key);
        if (!b) continue;
        actors.lose_holds(*b, Presence::none);
        bool wake = false;
        for (const Waiter& w : b->waiters) wake |= w.actor < (1ULL << 32);
        if (wake) out.add(Wake{key});
        for (const Waiter& w : std::exchange(b->waiters, {})) {
            Actor* a = actors.find(w.actor);
            if (!a) continue;
            a->waiting = false;
            if (a->tid != 0) continue;
            out.add(AcquireDone{a->cookie, true, self});
            end_acquire(a->id);
        }
    }
    for (const PageKey& key : keys) {
        if (Busy* b = find_busy(key)) forget_withdrawn(*b);
        busy.erase(key);
    }
    objects.erase(object);
    read_ahead.forget(object);
    end();
}

}  // namespace gpr
