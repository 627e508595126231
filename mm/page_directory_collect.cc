// How PageDirectory brings all touched pages of a run to one node.
//
// Pages without an entry are as born, and only the birth node knows which of them the program has
// touched. It is asked first (a census). So only pages that were touched, or that other nodes have,
// cost anything.
#include <algorithm>
#include <limits>
#include <utility>

#include "mm/page_directory_core.h"

namespace gpr {

void PageDirectory::collect(ObjectId object, uint64_t first, uint64_t count, NodeId node,
                            Access access, uint64_t cookie, uint64_t now_ns) {
    Core& c = *core_;
    if (c.watcher)
        c.watcher(directory_event::Collect{object, first, count, node, access, cookie, now_ns});
    c.begin(now_ns);
    Core::Collect collect;
    collect.object = object;
    collect.next = collect.known = first;
    collect.end = first + std::min(count, max_object_pages - std::min(first, max_object_pages));
    collect.node = node;
    collect.access = access;
    collect.age = ++c.clock;
    collect.cookie = cookie;
    Core::Object* o = c.object_of(object);
    if (!o) collect.next = collect.end;
    const PageCollects::Id id = c.collects.add(std::move(collect));
    if (o) o->collects.insert(id);
    c.end();
}

// Starts more pages of a collect, up to the window.
void PageDirectory::Core::pump(uint32_t id, Collect& c) {
    Object* o = object_of(c.object);
    while (o && c.next < c.end && c.under_way < options.collect_window) {
        if (c.told) learn_touched(*o, c);
        // Untouched pages are on their birth node already.
        if (o->birth == c.node || o->orphan) c.known = c.end;
        c.next = o->table.next_entry(c.next, c.known);
        if (c.next == c.end) return;
        if (c.next == c.known) return ask_census(id, *o, c);
        const PageKey key{c.object, c.next++};
        const Page p = load(*o, key.index);
        // As the oldest: a node that keeps it from younger ones may wait for one that is held back.
        const uint64_t age = o->holds > 0 ? 0 : c.age;
        Wish wish{{age, c.node, 0}, c.access, Presence::none, 0, false, true, id};
        if (!find_busy(key) && is_served(p, wish)) continue;
        ++c.under_way;
        Busy& b = make_busy(*o, key);
        add_wish(b, wish);
        advance(*o, b);
    }
}

void PageDirectory::Core::ask_census(uint32_t id, const Object& o, Collect& c) {
    if (c.asked) return;
    c.asked = true;
    constexpr uint64_t most = std::numeric_limits<uint32_t>::max();
    const PageRun run{c.object, c.next, static_cast<uint32_t>(std::min(c.end - c.next, most))};
    out.add(SendMessage{o.birth, false, {clock, Census{run, id}}});
}

void PageDirectory::Core::handle(NodeId from, Touched& t) {
    auto it = collects.all.find(t.collect);
    if (it == collects.all.end()) {  // its object is gone
        ++stats.late_messages;
        return;
    }
    const Collect& c = it->second;
    const Object* o = object_of(c.object);
    const uint64_t end = t.run.first + t.run.count;
    bool good = o && o->birth == from && c.asked && !c.told && t.run.object == c.object &&
                t.run.first == c.known && t.run.count > 0 && end <= c.end;
    uint64_t at = t.run.first;
    for (const PageSpan& span : t.touched) {
        good = good && span.first >= at && span.first < end && span.count > 0 &&
               span.count <= end - span.first;
        at = span.first + span.count;
    }
    if (!good) {
        ++stats.bad_messages;
        return;
    }
    collects.tell(it->first, from, std::move(t));
}

// The birth node has touched these pages, so they get entries. Pages that it gave away before it
// answered must have arrived first.
void PageDirectory::Core::learn_touched(Object& o, Collect& c) {
    if (!collects.has_heard(o.birth, *c.told)) return;
    const Touched told = *std::exchange(c.told, std::nullopt);
    for (const PageSpan& span : told.touched) {
        for (uint64_t i = span.first; i < span.first + span.count; ++i) {
            Page p = load(o, i);
            if (!p.born) continue;
            p.born = false;
            store(o, i, p);
        }
    }
    c.known = told.run.first + told.run.count;
    c.asked = false;
}

void PageDirectory::Core::handle(NodeId, const Ack& ack) {
    auto it = collects.all.find(ack.collect);
    if (it == collects.all.end() || ack.pages > it->second.under_way) {
        ++stats.bad_messages;
        return;
    }
    it->second.under_way -= ack.pages;
    it->second.collected += ack.pages;
    collects.wake(it->first);
}

}  // namespace gpr
