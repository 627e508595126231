#include "mm/page_directory.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/result.h"
#include "mm/page_directory_core.h"

namespace gpr {

namespace {

bool sane(const PageRun& run) {
    return run.count > 0 && run.count <= max_run_pages && run.first < max_object_pages &&
           run.count <= max_object_pages - run.first;
}

}  // namespace

PageDirectory::PageDirectory(DirectoryOptions options) : core_(std::make_unique<Core>()) {
    core_->options = options;
}

PageDirectory::~PageDirectory() = default;

void PageDirectory::add_object(ObjectId object, NodeId birth) {
    GPR_ASSERT(birth < max_nodes);
    if (core_->watcher) core_->watcher(directory_event::AddObject{object, birth});
    core_->objects[object].birth = birth;
}

void PageDirectory::erase_object(ObjectId object) {
    Core& c = *core_;
    if (c.watcher) c.watcher(directory_event::EraseObject{object});
    Core::Object* o = c.object_of(object);
    if (!o) return;
    c.forget_pages(*o, object, 0, max_object_pages);
    for (PageCollects::Id id : o->collects) c.collects.stop(id);
    c.objects.erase(object);
    c.end();
}

void PageDirectory::drop(ObjectId object, uint64_t first, uint64_t count) {
    Core& c = *core_;
    if (c.watcher) c.watcher(directory_event::Drop{object, first, count});
    Core::Object* o = c.object_of(object);
    if (!o || first >= max_object_pages) return;
    c.forget_pages(*o, object, first, count);
    o->table.drop(first, count);
    c.end();
}

void PageDirectory::on_message(NodeId from, Message message, uint64_t now_ns) {
    Core& c = *core_;
    if (c.watcher) c.watcher(directory_event::Told{from, message, now_ns});
    c.begin(now_ns);
    c.clock = std::max(c.clock, message.clock);
    if (from >= max_nodes) {
        ++c.stats.bad_messages;
    } else if (auto* request = std::get_if<Request>(&message.body)) {
        c.handle(from, *request);
    } else if (auto* surrender = std::get_if<Surrender>(&message.body)) {
        c.handle(from, *surrender);
    } else if (auto* push = std::get_if<Push>(&message.body)) {
        c.handle(from, *push);
    } else if (auto* ack = std::get_if<Ack>(&message.body)) {
        c.handle(from, *ack);
    } else if (auto* touched = std::get_if<Touched>(&message.body)) {
        c.handle(from, *touched);
    } else {
        ++c.stats.bad_messages;
    }
    c.end();
}

void PageDirectory::hold(ObjectId object) {
    Core& c = *core_;
    if (c.watcher) c.watcher(directory_event::Hold{object});
    Core::Object* o = c.object_of(object);
    if (o && ++o->holds == 1) c.hold_back(*o, object);
}

void PageDirectory::hold_all(ObjectId object) {
    Core& c = *core_;
    if (c.watcher) c.watcher(directory_event::HoldAll{object});
    Core::Object* o = c.object_of(object);
    if (!o) return;
    ++o->holds;
    o->held_for_all = true;
    c.hold_back(*o, object);
}

void PageDirectory::release(ObjectId object, uint64_t now_ns) {
    Core& c = *core_;
    if (c.watcher) c.watcher(directory_event::Release{object, now_ns});
    Core::Object* o = c.object_of(object);
    if (!o || o->holds == 0 || --o->holds > 0) return;
    o->held_for_all = false;
    c.begin(now_ns);
    for (const auto& [from, request] : std::exchange(o->held_back, {})) c.handle(from, request);
    c.end();
}

bool PageDirectory::holds_back(ObjectId object) const {
    const Core::Object* o = core_->object_of(object);
    return o && !o->held_back.empty();
}

uint64_t PageDirectory::remove_node(NodeId node, uint64_t now_ns) {
    Core& c = *core_;
    if (c.watcher) c.watcher(directory_event::RemoveNode{node, now_ns});
    c.begin(now_ns);
    for (const auto& [id, collect] : c.collects.all) {
        c.collects.wake(id);
        if (collect.node == node) c.collects.stop(id);
    }
    uint64_t lost = 0;
    for (ObjectId id : c.object_ids()) {
        Core::Object& o = c.objects.at(id);
        if (o.birth == node) o.orphan = true;
        std::erase_if(o.held_back, [&](const auto& held) { return held.first == node; });
        std::vector<PageKey> keys;
        o.table.for_each(0, max_object_pages, [&](uint64_t index, uint64_t&) {
            keys.push_back({id, index});
        });
        for (const PageKey& key : keys) lost += c.remove_holder(o, key, node);
    }
    c.end();
    return lost;
}

PageHolders PageDirectory::holders(PageKey key) const {
    const Core::Object* o = core_->object_of(key.object);
    if (!o || key.index >= max_object_pages) return {};
    const Core::Page p = core_->load(*o, key.index);
    return {p.nodes, p.exclusive, p.anchored, core_->busy.contains(key), p.epoch};
}

uint64_t PageDirectory::next_known(ObjectId object, uint64_t first, uint64_t end) const {
    const Core::Object* o = core_->object_of(object);
    return o ? o->table.next_entry(first, end) : end;
}

const DirectoryStats& PageDirectory::stats() const { return core_->stats; }

size_t PageDirectory::memory_bytes() const {
    size_t bytes = core_->busy.memory_bytes();
    for (const auto& [id, o] : core_->objects) bytes += sizeof(o) + o.table.memory_bytes();
    return bytes;
}

void PageDirectory::drain(std::vector<Action>& into) {
    core_->out.drain(into);
    if (!core_->watcher || into.empty()) return;
    directory_event::Decided decided;
    for (const Action& action : into) {
        if (const auto* send = std::get_if<SendMessage>(&action)) {
            decided.decisions.emplace_back(*send);
        } else {
            decided.decisions.emplace_back(std::get<CollectDone>(action));
        }
    }
    core_->watcher(decided);
}

void PageDirectory::Core::begin(uint64_t now_ns) {
    now = std::max(now, now_ns);
    ++round;
}

// What one collect does may let another go on.
void PageDirectory::Core::end() {
    while (const PageCollects::Id id = collects.take_next()) {
        Collect& c = collects.all.at(id);
        pump(id, c);
        if (c.next < c.end || c.under_way > 0) continue;
        out.add(CollectDone{c.cookie, c.collected, c.left_behind});
        if (Object* o = object_of(c.object)) o->collects.erase(id);
        collects.all.erase(id);
    }
}

void PageDirectory::Core::hold_back(Object& o, ObjectId object) {
    std::vector<PageKey> keys;
    for (const auto& [key, b] : busy) {
        if (key.object == object) keys.push_back(key);
    }
    std::sort(keys.begin(), keys.end());
    for (const PageKey& key : keys) {
        if (Busy* b = find_busy(key)) hold_back(o, *b);
    }
}

// Sets aside the wishes that the hold excludes. Recalls that were sent will be answered; then
// nobody has the page, and it goes to node 0. They are repeated in the name of the oldest, because
// a node that keeps the page against younger requests may itself wait for one that is held back.
void PageDirectory::Core::hold_back(Object& o, Busy& b) {
    std::erase_if(b.wishes, [&](const Wish& w) {
        const bool of_home = w.who.node == directory_node;
        if (w.collect != 0 || (of_home && (w.internal || !o.held_for_all))) return false;
        // For a push to another node. If that node wants the page, it will request it.
        if (w.internal) return true;
        Request request{{b.key.object, b.key.index, 1},
                        w.optional ? 0U : 1U,
                        w.access,
                        w.have,
                        w.who.tid,
                        w.who.age,
                        {w.have_epoch},
                        w.lost};
        o.held_back.emplace_back(w.who.node, std::move(request));
        return true;
    });
    const Wish eldest{{0, directory_node, 0}, Access::write, Presence::none, 0, false, true, 0};
    if (b.outstanding != 0) raise_recall(b, load(o, b.key.index), eldest);
    advance(o, b);
}

void PageDirectory::Core::handle(NodeId from, const Request& r) {
    ++stats.requests;
    Object* o = object_of(r.run.object);
    if (!sane(r.run) || r.must > r.run.count || r.have_epochs.size() < r.must ||
        r.have_epochs.size() > r.run.count || r.have == Presence::exclusive) {
        ++stats.bad_messages;
        return;
    }
    if (o && o->holds > 0 && (from != directory_node || o->held_for_all)) {
        o->held_back.emplace_back(from, r);
        return;
    }
    for (uint32_t i = 0; o && i < r.run.count; ++i) {
        const PageKey key = r.run[i];
        Epoch have_epoch = 0;
        if (i < r.have_epochs.size()) {
            have_epoch = r.have_epochs[i];
            if (generation_of(have_epoch) != o->table.generation(key.index)) {
                ++stats.late_messages;
                continue;
            }
        }
        request_page(
            *o, key,
            {{r.age, from, r.tid}, r.access, r.have, have_epoch, i >= r.must, false, 0, r.lost});
    }
}

void PageDirectory::Core::request_page(Object& o, PageKey key, const Wish& w) {
    const Page p = load(o, key.index);
    const bool is_busy = find_busy(key) != nullptr;
    if (w.optional) {
        // Read-ahead takes only pages that are easy to get.
        const auto others = static_cast<uint16_t>(p.nodes & ~bit(w.who.node));
        if (is_busy || p.anchored || (p.migratory > 0 && !w.lost)) return;
        if (w.access == Access::write && std::popcount(others) > 1) return;
    }
    if (!is_busy && is_served(p, w)) return;
    if (p.anchored) {
        const Anchor& a = anchors[key];
        if (a.node != w.who.node && now < a.next_probe_ns) return refuse(key, w, a.node, p.epoch);
    }
    Busy& b = make_busy(o, key);
    add_wish(b, w);
    advance(o, b);
}

void PageDirectory::Core::handle(NodeId from, Surrender& s) {
    Object* o = object_of(s.run.object);
    if (!sane(s.run) || s.epochs.size() != s.run.count || s.contents.size() != s.run.count) {
        ++stats.bad_messages;
        return;
    }
    for (uint32_t i = 0; o && i < s.run.count; ++i) {
        const PageKey key = s.run[i];
        const Busy* b = find_busy(key);
        if (!b || !(b->outstanding & bit(from)) || b->round != s.round ||
            load(*o, key.index).epoch != s.epochs[i]) {
            ++stats.late_messages;
            continue;
        }
        surrender_page(*o, from, key, s.left, std::move(s.contents[i]));
    }
}

void PageDirectory::Core::surrender_page(Object& o, NodeId from, PageKey key, Presence left,
                                         PageContent content) {
    Busy& b = *find_busy(key);
    if (content.kind == ContentKind::pinned) {
        anchor(o, b, from);
    } else if (content.kind == ContentKind::absent) {
        refuse_absent(o, b, from);
    } else if (content.kind == ContentKind::declined) {
        // Meanwhile the page is needed after all: the recall was repeated and gets its own answer.
        if (!b.optional) return;
        b.outstanding &= static_cast<uint16_t>(~bit(from));
        std::erase_if(b.wishes, [&](const Wish& w) {
            if (w.optional) resolve(w, false);
            return w.optional;
        });
    } else if (left != Presence::exclusive) {
        Page p = load(o, key.index);
        absorb(p, b, from, left, std::move(content));
        store(o, key.index, p);
    } else {
        ++stats.bad_messages;
        return;
    }
    advance(o, b);
}

void PageDirectory::Core::handle(NodeId from, Push& push) {
    Object* o = object_of(push.run.object);
    if (!sane(push.run) || push.epochs.size() != push.run.count ||
        push.contents.size() != push.run.count || push.to >= max_nodes || push.to == from ||
        push.left == Presence::exclusive) {
        ++stats.bad_messages;
        return;
    }
    collects.note_pushed(from, push.run.count);
    if (o && o->holds > 0) push.to = directory_node;
    for (uint32_t i = 0; o && i < push.run.count; ++i) {
        push_page(*o, from, push, i, std::move(push.contents[i]));
    }
}

// Content from the exclusive owner is never refused: it is the only one. If others wish for the
// page already they are served by seniority, as after any surrender.
void PageDirectory::Core::push_page(Object& o, NodeId from, const Push& push, uint32_t i,
                                    PageContent content) {
    const PageKey key = push.run[i];
    Page p = load(o, key.index);
    const bool is_busy = find_busy(key) != nullptr;
    const bool withdrawn = !p.exclusive && push.left == Presence::none;
    if (p.epoch != push.epochs[i] || !(p.nodes & bit(from)) ||
        (!p.exclusive && !withdrawn && is_busy)) {
        ++stats.late_messages;
        return;
    }
    if (withdrawn) return withdraw(o, key, p, from, push.to, push.tid);
    Busy& b = make_busy(o, key);
    if (p.exclusive) {
        absorb(p, b, from, push.left, std::move(content));
        store(o, key.index, p);
    } else {
        b.content = std::move(content);
    }
    if (!is_busy) {
        const Access access = push.left == Presence::none ? Access::write : Access::read;
        add_wish(b, {{0, push.to, push.tid}, access, Presence::none, 0, false, true, 0});
    }
    advance(o, b);
}

// A sharer has given its copy up for another sharer to write. It still answers recalls of this
// version.
void PageDirectory::Core::withdraw(Object& o, PageKey key, Page p, NodeId from, NodeId to,
                                   Tid tid) {
    Busy* b = find_busy(key);
    if (b && !(b->outstanding & bit(from) & ~b->data_from)) {
        // Its copy may be needed: look again when all wishes are served.
        b->withdrawn |= bit(from);
        return;
    }
    const bool only_copy = p.nodes == bit(from);
    if (!b) {
        b = &make_busy(o, key);
        add_wish(*b, {{0, to, tid}, Access::write, Presence::none, 0, false, true, 0});
    }
    if (!only_copy) {
        absorb(p, *b, from, Presence::none, {});
        store(o, key.index, p);
    }
    advance(o, *b);
}

void PageDirectory::Core::forget_pages(Object& o, ObjectId object, uint64_t first, uint64_t count) {
    if (busy.empty() && anchors.empty()) return;
    std::vector<PageKey> keys;
    o.table.for_each(first, count, [&](uint64_t index, uint64_t&) {
        keys.push_back({object, index});
    });
    for (const PageKey& key : keys) {
        anchors.erase(key);
        const Busy* b = busy.find(key);
        if (!b) continue;
        for (const Wish& w : b->wishes) resolve(w, false);
        busy.erase(key);
    }
}

uint64_t PageDirectory::Core::remove_holder(Object& o, PageKey key, NodeId node) {
    Page p = load(o, key.index);
    Busy* b = find_busy(key);
    const bool held = !p.born && (p.nodes & bit(node));
    if (!b && !held) return 0;
    if (!b) b = &make_busy(o, key);
    std::erase_if(b->wishes, [&](const Wish& w) { return w.who.node == node; });
    b->outstanding &= static_cast<uint16_t>(~bit(node));
    uint64_t lost = 0;
    if (held) {
        p.nodes &= static_cast<uint16_t>(~bit(node));
        p.exclusive = false;
        if (p.anchored && anchors[key].node == node) {
            p.anchored = false;
            anchors.erase(key);
        }
        store(o, key.index, p);
        if (p.nodes == 0 && b->content.kind == ContentKind::none) {
            b->content.kind = ContentKind::zero;
            lost = 1;
        }
    }
    advance(o, *b);
    return lost;
}

}  // namespace gpr
