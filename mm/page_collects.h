// The collects of a PageDirectory that are under way: which of them an event lets go on. A fork may
// have begun one for each of its mappings, so no event may look at all of them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "mm/compact_bytes.h"
#include "mm/page_protocol.h"

namespace gpr {

struct PageCollect {
    ObjectId object = 0;
    uint64_t next = 0, end = 0;
    NodeId node = 0;
    Access access = Access::read;
    uint64_t age = 0;
    uint64_t cookie = 0;
    uint32_t under_way = 0;
    uint64_t collected = 0, left_behind = 0;
    uint64_t known = 0;  // all touched pages before this one have an entry
    bool asked = false;  // the birth node, about the pages from there on
    std::optional<Touched> told;

    friend auto fields(Either<PageCollect> auto& x) {
        return std::tie(x.object, x.next, x.end, x.node, x.access, x.age, x.cookie, x.under_way,
                        x.collected, x.left_behind, x.known, x.asked, x.told);
    }
};

class PageCollects {
public:
    using Id = uint32_t;  // not 0

    Id add(PageCollect collect) {
        const Id id = next++;
        if (next == 0) next = 1;
        all[id] = std::move(collect);
        may_go_on_.insert(id);
        return id;
    }
    // For a collect that was loaded with the state: does what add() and tell() did for it before.
    void restore(Id id, NodeId birth) {
        may_go_on_.insert(id);
        if (const auto& told = all.at(id).told) await_pushes_.emplace(birth, told->pushed, id);
    }
    void wake(Id id) { may_go_on_.insert(id); }
    // Ends the collect, because what it waits for will not come any more.
    void stop(Id id) {
        PageCollect& c = all.at(id);
        c.next = c.end;
        c.under_way = 0;
        wake(id);
    }
    // The birth node has answered. Its answer counts once all pages have come that it pushed
    // before.
    void tell(Id id, NodeId birth, Touched touched) {
        if (has_heard(birth, touched)) {
            wake(id);
        } else {
            await_pushes_.emplace(birth, touched.pushed, id);
        }
        all.at(id).told = std::move(touched);
    }
    [[nodiscard]] bool has_heard(NodeId birth, const Touched& touched) const {
        return pushed_by[birth] >= touched.pushed;
    }
    void note_pushed(NodeId from, uint64_t pages) {
        pushed_by[from] += pages;
        auto it = await_pushes_.lower_bound({from, 0, 0});
        for (; it != await_pushes_.end() && std::get<0>(*it) == from &&
               std::get<1>(*it) <= pushed_by[from];
             it = await_pushes_.erase(it)) {
            wake(std::get<2>(*it));
        }
    }
    // A collect that may go on or has ended, once for each time that it is woken; 0: there is none.
    [[nodiscard]] Id take_next() {
        while (!may_go_on_.empty()) {
            const Id id = *may_go_on_.begin();
            may_go_on_.erase(may_go_on_.begin());
            if (all.contains(id)) return id;
        }
        return 0;
    }

    std::map<Id, PageCollect> all;
    Id next = 1;
    std::array<uint64_t, max_nodes> pushed_by{};  // pages that have arrived

private:
    std::set<Id> may_go_on_;
    std::set<std::tuple<NodeId, uint64_t, Id>> await_pushes_;
};

}  // namespace gpr
