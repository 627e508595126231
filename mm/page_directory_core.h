// The inside of PageDirectory, for page_directory*.cc only.
//
// A page has an eight-byte entry. While it is wished for, a Busy holds the wishes, oldest first,
// and the recalls that are out. The front wish decides what happens next. If an older one gets to
// the front, recalls already out are repeated in its name, so that a holder that keeps the page
// against the younger wish gives way to the older. When all recalls are answered, the front is
// served with what has been collected.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mm/compact_bytes.h"
#include "mm/migration_trend.h"
#include "mm/page_collects.h"
#include "mm/page_directory.h"
#include "mm/page_outbox.h"
#include "mm/page_table.h"

namespace gpr {

struct PageDirectory::Core {
    struct Wish {
        Seniority who;
        Access access = Access::read;
        Presence have = Presence::none;
        Epoch have_epoch = 0;
        bool optional = false;
        bool internal = false;  // our own (collect, repair): the node has what the entry says
        uint32_t collect = 0;
        bool lost = false;  // see Request

        friend auto fields(Either<Wish> auto& x) {
            return std::tie(x.who, x.access, x.have, x.have_epoch, x.optional, x.internal,
                            x.collect, x.lost);
        }
    };

    struct Busy {
        PageKey key;
        std::vector<Wish> wishes;  // required ones before optional ones, then by seniority
        uint16_t outstanding = 0;  // nodes that owe an answer
        uint16_t data_from = 0;    // those of them that send the content
        uint32_t round = 0;
        Presence leave = Presence::none;
        bool optional = false;
        // The node of the front wish has read what another node wrote last, and now writes it.
        bool migrating = false;
        bool foretold = false;  // see Plan
        // A sharer has lost its copy, which cannot be granted again in this version.
        bool broken_era = false;
        // Sharers that gave up their copies meanwhile; these can still be recalled.
        uint16_t withdrawn = 0;
        Seniority recalled_for;
        PageContent content;  // collected; valid until a node may write

        void recycle() {
            Busy fresh;
            fresh.wishes.swap(wishes);
            *this = std::move(fresh);
            wishes.clear();
        }
        friend auto fields(Either<Busy> auto& x) {
            return std::tie(x.wishes, x.outstanding, x.data_from, x.round, x.leave, x.optional,
                            x.migrating, x.foretold, x.broken_era, x.withdrawn, x.recalled_for,
                            x.content);
        }
    };

    struct Object {
        PageTable table;
        NodeId birth = 0;
        bool orphan = false;  // the birth node is gone: untouched pages are zero
        uint32_t holds = 0;
        bool held_for_all = false;
        MigrationTrend trend;
        std::vector<std::pair<NodeId, Request>> held_back;
        std::set<PageCollects::Id> collects;  // that are about it

        friend auto fields(Either<Object> auto& x) {  // in addition to the table
            return std::tie(x.birth, x.orphan, x.holds, x.held_for_all, x.trend, x.held_back);
        }
    };

    // An entry, unpacked.
    struct Page {
        uint16_t nodes = 0;
        bool exclusive = false;
        bool anchored = false;
        bool born = false;  // as born: no entry
        NodeId last_writer = 0;
        uint8_t migratory = 0;  // how many more reads are granted exclusively
        // Its first read has been granted. `awaits_write`: as an ordinary one, and whether a write
        // follows is to be learned.
        bool judged = false, awaits_write = false;
        // Its owner has it to read only, and may never have written it: `last_writer` is another.
        bool foretold = false;
        Epoch epoch = 0;

        void note_granted(MigrationTrend& trend, const Wish& w, bool exclusively, bool migrating);
    };
    struct Plan {
        uint16_t recall = 0;
        Presence leave = Presence::none;
        bool exclusive = false;
        bool foretold = false;  // exclusive for a read, by the object's trend
        bool keep = false;      // the node has the content already
    };
    struct Anchor {
        NodeId node = 0;
        uint64_t next_probe_ns = 0;
        uint64_t wait_ns = 0;

        friend auto fields(Either<Anchor> auto& x) {
            return std::tie(x.node, x.next_probe_ns, x.wait_ns);
        }
    };
    using Collect = PageCollect;

    DirectoryOptions options;
    DirectoryStats stats;
    Outbox out;
    uint64_t now = 0;
    uint64_t clock = 0;
    uint32_t round = 0;  // a new one for each event
    std::unordered_map<ObjectId, Object> objects;
    PageMap<Busy> busy;
    std::unordered_map<PageKey, Anchor, PageKeyHash> anchors;
    PageCollects collects;
    std::function<void(const DirectoryEvent&)> watcher;

    friend auto fields(Either<Core> auto& x) {  // and the maps of objects and pages
        return std::tie(x.now, x.clock, x.round, x.collects.next, x.collects.pushed_by);
    }

    // --- page_directory.cc: events ---
    void begin(uint64_t now_ns);
    void end();
    void handle(NodeId from, const Request& request);
    void handle(NodeId from, Surrender& surrender);
    void handle(NodeId from, Push& push);
    void request_page(Object& o, PageKey key, const Wish& wish);
    void surrender_page(Object& o, NodeId from, PageKey key, Presence left, PageContent content);
    void push_page(Object& o, NodeId from, const Push& push, uint32_t i, PageContent content);
    void forget_pages(Object& o, ObjectId object, uint64_t first, uint64_t count);
    void hold_back(Object& o, ObjectId object);
    void hold_back(Object& o, Busy& b);
    uint64_t remove_holder(Object& o, PageKey key, NodeId node);

    // --- page_directory_collect.cc ---
    void handle(NodeId from, const Ack& ack);
    void handle(NodeId from, Touched& touched);
    void pump(uint32_t id, Collect& c);
    void ask_census(uint32_t id, const Object& o, Collect& c);
    void learn_touched(Object& o, Collect& c);

    // --- page_directory_state.cc: sorted, so that the saved state does not depend on history ---
    [[nodiscard]] std::vector<ObjectId> object_ids() const;
    [[nodiscard]] std::vector<PageKey> busy_keys() const;

    // --- page_directory_pages.cc: one page ---
    Object* object_of(ObjectId object);
    Page load(const Object& o, uint64_t index) const;
    void store(Object& o, uint64_t index, const Page& page);
    Busy* find_busy(PageKey key);
    Busy& make_busy(Object& o, PageKey key);
    void add_wish(Busy& b, const Wish& wish);
    void advance(Object& o, Busy& b);
    bool finish(Object& o, Busy& b);
    bool is_served(const Page& p, const Wish& w, uint16_t withdrawn = 0) const;
    void withdraw(Object& o, PageKey key, Page p, NodeId from, NodeId to, Tid tid);
    Plan plan_for(const Object& o, const Page& p, const Busy& b, const Wish& w) const;
    void start_recall(Busy& b, const Page& p, const Wish& w, const Plan& plan);
    void raise_recall(Busy& b, const Page& p, const Wish& w);
    void send_recalls(Busy& b, Epoch epoch);
    void serve(Object& o, Busy& b, Page p, const Wish& w, const Plan& plan);
    void send_grant(PageKey key, NodeId to, Presence presence, Epoch epoch, PageContent content,
                    Tid tid, uint32_t collect, bool bulk);
    void absorb(Page& p, Busy& b, NodeId from, Presence left, PageContent content);
    void anchor(Object& o, Busy& b, NodeId node);
    void refuse_absent(Object& o, Busy& b, NodeId node);
    void refuse(PageKey key, const Wish& w, NodeId anchor_node, Epoch epoch);
    void resolve(const Wish& w, bool left_behind);
};

}  // namespace gpr
