// Pages of shared memory: MAP_SHARED files, memfds, System V segments. docs/decisions/0005.
//
// An acceptor has one memfd for each object and maps it into every process that shows the object,
// so aliases are one page and futexes between processes work. A page that is not there is a hole
// of the memfd: every mapping reports its first use. A page that is not ours alone is
// write-protected in every mapping, those that have not used it included: before it is put into
// the memfd each is marked, and a mapping that comes later is marked where there are pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/task.h"
#include "mm/address_space.h"
#include "mm/page_actions.h"
#include "mm/page_agent.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class SharedObjects {
public:
    SharedObjects(Core& core, Pager& pager) : core_(core), pager_(pager) {}

    // Memory that several mappings, also of several processes, show. memfd: where its pages are on
    // this node; none on node 0, where the kernel's own mappings have them.
    void add(ObjectId object, Fd memfd, uint64_t pages);
    void resize(ObjectId object, uint64_t pages);
    void erase(ObjectId object);
    [[nodiscard]] bool contains(ObjectId object) const { return objects_.contains(object); }
    [[nodiscard]] uint64_t pages(ObjectId object) const;
    [[nodiscard]] int memfd(ObjectId object) const;

    // Faults on shared memory that is used at home go to the handler of code faults, so that
    // threads that need it go there; and of pages that home lends it keeps what is written there
    // meanwhile. An object need not be known.
    void keep_home() { all_at_home_ = true; }
    void keep_home(ObjectId object) { used_at_home_.insert(object); }
    [[nodiscard]] bool is_used_at_home(ObjectId object) const;
    // At home: others may write what is lent of this one, too.
    void expect_writers(ObjectId object) { objects_.at(object).has_writers = true; }
    // Node 0: the object's file may lack room for a page (shared_room.h).
    void expect_no_room(ObjectId object) { objects_.at(object).may_lack_room = true; }
    [[nodiscard]] bool may_lack_room(ObjectId object) const;

    // Node 0: brings what was written elsewhere home; write: and leaves no copies there.
    Task<void> collect(std::vector<ObjectId> objects, Access access);
    // Node 0: of the pages that lie where these of a private mapping do in the file that both show,
    // what was written elsewhere is in the file.
    Task<void> bring_home_below(const Mapping& mapping, Range range);
    // Node 0: until they are released as often, the others get no page of the objects.
    void hold(const std::vector<ObjectId>& objects);
    void release(const std::vector<ObjectId>& objects);
    // Somebody waits for that.
    [[nodiscard]] bool holds_back(const std::vector<ObjectId>& objects) const;

    void install(const Install& action);
    std::vector<TakeResult> take(const Take& action);

private:
    struct Object {
        Fd memfd;
        uint64_t pages = 0;
        bool has_writers = false;
        bool may_lack_room = false;
        // At home, where others go on writing pages that it has lent: what they were.
        std::map<uint64_t, std::shared_ptr<const std::byte>> lent;
    };
    void put(PageKey first, std::span<const std::byte> bytes);
    [[nodiscard]] bool is_kept(ObjectId object, const Object& o) const;

    Core& core_;
    Pager& pager_;
    std::unordered_map<ObjectId, Object> objects_;
    bool all_at_home_ = false;  // else
    std::set<ObjectId> used_at_home_;
};

}  // namespace gpr::paging
