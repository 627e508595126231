// What PageDirectory does about one page: its entry, which nodes to recall it from, what to grant.
#include <algorithm>
#include <bit>
#include <utility>

#include "base/result.h"
#include "mm/page_directory_core.h"

namespace gpr {

namespace {

// An entry: bits 0-15 nodes, 16 exclusive, 17 has a Busy, 18 anchored, 19-22 last writer, 23-25
// migratory, 26 not as born, 27 its first read has been granted (then 23: a write is awaited, 24:
// was foretold), 28-63 version.
constexpr uint64_t busy_bit = 1ULL << 17;
constexpr uint64_t changed_bit = 1ULL << 26;
constexpr uint64_t judged_bit = 1ULL << 27;
constexpr unsigned version_shift = 64 - version_bits;

// How many reads are granted exclusively before one tests whether a write still follows.
constexpr uint8_t migratory_reads = 7;

}  // namespace

PageDirectory::Core::Object* PageDirectory::Core::object_of(ObjectId object) {
    auto it = objects.find(object);
    return it == objects.end() ? nullptr : &it->second;
}

PageDirectory::Core::Page PageDirectory::Core::load(const Object& o, uint64_t index) const {
    const uint64_t e = o.table.get(index) & ~busy_bit;
    Page p;
    p.epoch = make_epoch(o.table.generation(index), e >> version_shift);
    if (e == 0) {
        p.born = true;
        p.nodes = o.orphan ? 0 : bit(o.birth);
        p.exclusive = !o.orphan;
        p.last_writer = o.birth;
        return p;
    }
    p.nodes = static_cast<uint16_t>(e);
    p.exclusive = (e >> 16) & 1;
    p.anchored = (e >> 18) & 1;
    p.last_writer = (e >> 19) & 15;
    p.judged = (e & judged_bit) != 0;
    const auto reads = static_cast<uint8_t>((e >> 23) & 7);
    p.migratory = p.judged ? 0 : reads;
    p.awaits_write = p.judged && (reads & 1) != 0;
    p.foretold = p.judged && (reads & 2) != 0;
    return p;
}

void PageDirectory::Core::store(Object& o, uint64_t index, const Page& p) {
    const uint64_t busy_now = o.table.get(index) & busy_bit;
    const uint64_t judgement = uint64_t{p.awaits_write} | uint64_t{p.foretold} << 1;
    const uint64_t reads = p.judged ? judgement : p.migratory;
    o.table.set(index, static_cast<uint64_t>(p.nodes) | (static_cast<uint64_t>(p.exclusive) << 16) |
                           busy_now | changed_bit | (static_cast<uint64_t>(p.anchored) << 18) |
                           (static_cast<uint64_t>(p.last_writer) << 19) | (reads << 23) |
                           (p.judged ? judged_bit : 0) | (version_of(p.epoch) << version_shift));
}

PageDirectory::Core::Busy* PageDirectory::Core::find_busy(PageKey key) { return busy.find(key); }

PageDirectory::Core::Busy& PageDirectory::Core::make_busy(Object& o, PageKey key) {
    if (Busy* known = busy.find(key)) return *known;
    Busy& b = busy.add(key);
    b.key = key;
    o.table.set(key.index, o.table.get(key.index) | busy_bit);
    return b;
}

// A node has one wish for each page; a later one of the same node makes it older or larger.
void PageDirectory::Core::add_wish(Busy& b, const Wish& wish) {
    Wish w = wish;
    if (!w.internal) {
        auto same = std::find_if(b.wishes.begin(), b.wishes.end(), [&](const Wish& other) {
            return !other.internal && other.who.node == w.who.node;
        });
        if (same != b.wishes.end()) {
            w.access = std::max(w.access, same->access);
            w.optional &= same->optional;
            if (same->who < w.who) w.who = same->who;
            const int64_t order = compare_epochs(same->have_epoch, w.have_epoch);
            if (order > 0 || (order == 0 && same->have == Presence::none)) {
                w.have_epoch = same->have_epoch;
                w.have = same->have;
            }
            b.wishes.erase(same);
        }
    }
    auto before = [](const Wish& x, const Wish& y) {
        return x.optional != y.optional ? y.optional : x.who < y.who;
    };
    b.wishes.insert(std::upper_bound(b.wishes.begin(), b.wishes.end(), w, before), w);
}

// Does what can be done for the front wish; may free b.
void PageDirectory::Core::advance(Object& o, Busy& b) {
    do {
        while (!b.wishes.empty()) {
            const Wish w = b.wishes.front();
            const Page p = load(o, b.key.index);
            // Do not collect what the node is just giving up.
            if (w.collect != 0 && (b.outstanding & bit(w.who.node))) return raise_recall(b, p, w);
            if (is_served(p, w, b.withdrawn)) {
                resolve(w, false);
                b.wishes.erase(b.wishes.begin());
                continue;
            }
            const Plan plan = plan_for(o, p, b, w);
            if (b.outstanding != 0) return raise_recall(b, p, w);
            if (plan.recall != 0) return start_recall(b, p, w, plan);
            b.wishes.erase(b.wishes.begin());
            serve(o, b, p, w, plan);
        }
    } while (!finish(o, b));
}

// Ends a Busy that has no wishes left. False if the directory had to add a wish of its own: no node
// has the page's content, or its version must end because a sharer was cut off.
bool PageDirectory::Core::finish(Object& o, Busy& b) {
    if (b.outstanding != 0) return true;
    const Page p = load(o, b.key.index);
    if (p.nodes == 0 && !p.born) {
        add_wish(b, {{0, directory_node, 0}, Access::write, Presence::none, 0, false, true, 0});
        return false;
    }
    if (const uint16_t gone = b.withdrawn & p.nodes; gone != 0 && !p.exclusive) {
        b.withdrawn = 0;
        const auto kept = static_cast<uint16_t>(p.nodes & ~gone);
        if (kept == 0) {
            add_wish(b, {{0, directory_node, 0}, Access::write, Presence::none, 0, false, true, 0});
            return false;
        }
        Page changed = p;
        changed.nodes = kept;
        store(o, b.key.index, changed);
        b.broken_era = true;
        return finish(o, b);
    }
    if (b.broken_era) {
        const auto node = static_cast<NodeId>(std::countr_zero(p.nodes));
        add_wish(b, {{0, node, 0}, Access::write, Presence::none, 0, false, true, 0});
        return false;
    }
    const PageKey key = b.key;
    o.table.set(key.index, o.table.get(key.index) & ~busy_bit);
    busy.erase(key);
    return true;
}

// Whether the node has what it wishes for, or is being sent it. If it asked with an older epoch
// than its grant's, the grant was on its way. If it asked with that epoch or a newer one, it gave
// the page up unasked, and that message is on its way.
bool PageDirectory::Core::is_served(const Page& p, const Wish& w, uint16_t withdrawn) const {
    if (!(p.nodes & bit(w.who.node))) return false;
    if (w.internal && (withdrawn & bit(w.who.node))) return false;
    if (w.internal) return w.access == Access::read || p.exclusive;
    if (w.optional && w.have == Presence::none) return true;
    const int64_t order = compare_epochs(w.have_epoch, p.epoch);
    if (order != 0) return order < 0;
    return w.have == Presence::shared && w.access == Access::read;
}

PageDirectory::Core::Plan PageDirectory::Core::plan_for(const Object& o, const Page& p,
                                                        const Busy& b, const Wish& w) const {
    const uint16_t self = bit(w.who.node);
    Plan plan;
    plan.keep = (p.nodes & self) && !p.exclusive &&
                (w.internal || (w.have == Presence::shared && w.have_epoch == p.epoch));
    const bool may_migrate = p.exclusive && !(p.nodes & self) && w.collect == 0;
    plan.foretold = may_migrate && w.access == Access::read && p.migratory == 0 && !p.judged &&
                    o.trend.predicts_write(b.key.index);
    const bool migrates = plan.foretold || (may_migrate && p.migratory > 0);
    // The node gave its copy up unasked; it cannot be granted again in this version.
    const bool lost = (p.nodes & self) && !p.exclusive && !plan.keep;
    plan.exclusive = w.access == Access::write || migrates || b.broken_era || lost || p.nodes == 0;
    if (plan.exclusive) {
        plan.recall = p.nodes & static_cast<uint16_t>(plan.keep ? ~self : ~0);
        plan.leave = Presence::none;
    } else if (p.exclusive) {
        plan.recall = p.nodes;
        plan.leave = Presence::shared;
    } else if (b.content.kind == ContentKind::none) {
        // Any sharer can send its copy; the lowest node first, because node 0 is here, without a
        // network.
        plan.recall = p.nodes & static_cast<uint16_t>(-p.nodes);
        plan.leave = Presence::shared;
    }
    return plan;
}

void PageDirectory::Core::start_recall(Busy& b, const Page& p, const Wish& w, const Plan& plan) {
    const bool need_data = !plan.keep && b.content.kind == ContentKind::none;
    b.outstanding = plan.recall;
    b.data_from = need_data ? plan.recall & static_cast<uint16_t>(-plan.recall) : 0;
    b.leave = plan.leave;
    b.optional = w.optional;
    b.round = round;
    b.recalled_for = w.who;
    b.foretold = plan.foretold;
    b.migrating = plan.keep && !w.internal && p.last_writer != w.who.node &&
                  p.nodes == (bit(w.who.node) | bit(p.last_writer));
    ++stats.recalls;
    send_recalls(b, p.epoch);
}

void PageDirectory::Core::raise_recall(Busy& b, const Page& p, const Wish& w) {
    // An optional recall is never repeated as such: after "declined", a second answer could be a
    // page that we no longer expect.
    if (b.optional ? w.optional : !(w.who < b.recalled_for)) return;
    b.recalled_for = std::min(b.recalled_for, w.who);
    b.optional = false;
    send_recalls(b, p.epoch);
}

void PageDirectory::Core::send_recalls(Busy& b, Epoch epoch) {
    for (NodeId node = 0; node < max_nodes; ++node) {
        if (!(b.outstanding & bit(node))) continue;
        const bool want_data = b.data_from & bit(node);
        auto& recall = out.extend_message<Recall>(
            node, b.key, b.optional, clock,
            [&](const Recall& r) {
                return r.leave == b.leave && r.want_data == want_data && r.optional == b.optional &&
                       r.round == b.round && r.for_whom == b.recalled_for;
            },
            [&] {
                return Recall{{}, b.leave, want_data, b.optional, b.round, b.recalled_for, {}};
            });
        recall.epochs.push_back(epoch);
    }
}

// What the grant shows about the next ones.
void PageDirectory::Core::Page::note_granted(MigrationTrend& trend, const Wish& w, bool exclusively,
                                             bool migrating) {
    if (migrating) {
        if (awaits_write) trend.note_write();
        judged = awaits_write = false;
        migratory = migratory_reads;
    } else if (w.access == Access::write || w.internal || w.collect != 0) {
        awaits_write = false;
    } else if (exclusively) {
        if (migratory > 0) --migratory;
        judged = migratory == 0;
        awaits_write = false;
    } else if (!judged && !w.optional && migratory == 0) {
        trend.note_read();
        judged = awaits_write = true;
    }
}

void PageDirectory::Core::serve(Object& o, Busy& b, Page p, const Wish& w, const Plan& plan) {
    PageContent content;
    if (!plan.keep) {
        content = b.content;
        // Born on a node that is gone, or a peer has withheld the content.
        if (content.kind == ContentKind::none) {
            content.kind = ContentKind::zero;
            if (!p.born) ++stats.bad_messages;
        }
    }
    ++stats.grants;
    stats.keep_grants += plan.keep;
    stats.zero_grants += content.kind == ContentKind::zero;
    if (plan.exclusive) {
        stats.migratory_grants += w.access == Access::read && p.migratory > 0;
        p.note_granted(o.trend, w, true, plan.keep && b.migrating);
        p.foretold = b.foretold && p.judged && w.access == Access::read;
        p.nodes = bit(w.who.node);
        p.exclusive = true;
        if (!p.foretold) p.last_writer = w.who.node;
        p.epoch = next_version(p.epoch);
        b.content = {};
        b.broken_era = false;
        b.withdrawn = 0;
    } else {
        p.note_granted(o.trend, w, false, false);
        p.nodes |= bit(w.who.node);
    }
    store(o, b.key.index, p);
    send_grant(b.key, w.who.node, plan.exclusive ? Presence::exclusive : Presence::shared, p.epoch,
               std::move(content), w.optional ? 0 : w.who.tid, w.collect,
               w.optional || w.collect != 0);
}

void PageDirectory::Core::send_grant(PageKey key, NodeId to, Presence presence, Epoch epoch,
                                     PageContent content, Tid tid, uint32_t collect, bool bulk) {
    auto& grant = out.extend_message<Grant>(
        to, key, bulk, clock,
        [&](const Grant& g) {
            return g.presence == presence && g.tid == tid && g.collect == collect &&
                   (!bulk || g.run.count < bulk_run_pages);
        },
        [&] { return Grant{{}, presence, tid, collect, {}, {}}; });
    grant.epochs.push_back(epoch);
    grant.contents.push_back(std::move(content));
}

// Records what a holder gave up, asked or unasked.
void PageDirectory::Core::absorb(Page& p, Busy& b, NodeId from, Presence left,
                                 PageContent content) {
    b.outstanding &= static_cast<uint16_t>(~bit(from));
    if (content.kind == ContentKind::zero || content.kind == ContentKind::data) {
        b.content = std::move(content);
    }
    p.born = false;
    if (p.anchored && anchors[b.key].node == from) {
        p.anchored = false;
        anchors.erase(b.key);
    }
    if (p.exclusive) {
        p.exclusive = false;
        if (!p.foretold) p.last_writer = from;
        p.foretold = false;
        if (left == Presence::shared) {
            p.epoch = next_version(p.epoch);
        } else {
            p.nodes = 0;
        }
    } else if (left == Presence::none) {
        p.nodes &= static_cast<uint16_t>(~bit(from));
        b.broken_era = true;
    }
}

// A device at this node has pinned the page: it stays there, and no other node can have it.
void PageDirectory::Core::anchor(Object& o, Busy& b, NodeId node) {
    Page p = load(o, b.key.index);
    b.outstanding &= static_cast<uint16_t>(~bit(node));
    p.anchored = true;
    store(o, b.key.index, p);
    Anchor& a = anchors[b.key];
    a.node = node;
    a.wait_ns =
        a.wait_ns == 0 ? options.first_probe_ns : std::min(a.wait_ns * 2, options.last_probe_ns);
    a.next_probe_ns = now + a.wait_ns;
    std::erase_if(b.wishes, [&](const Wish& w) {
        if (w.who.node == node) return false;
        if (w.collect == 0 && !w.internal) refuse(b.key, w, node, p.epoch);
        resolve(w, true);
        return true;
    });
    if (!p.exclusive) {
        add_wish(b, {{0, node, 0}, Access::write, Presence::none, 0, false, true, 0});
    }
}

// There is no such page (a file ends before it). Nothing changes: the next wish asks again.
void PageDirectory::Core::refuse_absent(Object& o, Busy& b, NodeId node) {
    const Epoch epoch = load(o, b.key.index).epoch;
    b.outstanding &= static_cast<uint16_t>(~bit(node));
    std::erase_if(b.wishes, [&](const Wish& w) {
        if (w.who.node == node && !w.internal) return false;
        if (w.collect == 0 && !w.internal) refuse(b.key, w, nowhere, epoch);
        resolve(w, false);
        return true;
    });
}

void PageDirectory::Core::refuse(PageKey key, const Wish& w, NodeId anchor_node, Epoch epoch) {
    if (w.optional) return;
    auto& refused = out.extend_message<Refused>(
        w.who.node, key, false, clock, [&](const Refused& r) { return r.anchor == anchor_node; },
        [&] {
            return Refused{{}, anchor_node, {}};
        });
    refused.epochs.push_back(epoch);
}

// The wish ends without a grant.
void PageDirectory::Core::resolve(const Wish& w, bool left_behind) {
    auto it = collects.all.find(w.collect);
    if (w.collect == 0 || it == collects.all.end()) return;
    --it->second.under_way;
    it->second.left_behind += left_behind;
    collects.wake(w.collect);
}

}  // namespace gpr
