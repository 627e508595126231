// Pages of shared memory: MAP_SHARED files, memfds, System V segments.
// docs/decisions/0005-shared-memory.md
//
// An acceptor has one memfd for each object and maps it into every process that uses the object, so
// that aliases are one page and futexes work between processes. A missing page is a hole of the
// memfd, and its first use through each mapping is reported. A page that this node does not own
// exclusively is write-protected in every mapping, even in those that have not used it yet: each is
// marked before the page is written to the memfd, and a new mapping is marked where pages exist.
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

    // An object that several mappings, perhaps of several processes, show. memfd: holds its pages
    // on this node; none on node 0, where the kernel's own mappings have them.
    void add(ObjectId object, Fd memfd, uint64_t pages);
    void resize(ObjectId object, uint64_t pages);
    void erase(ObjectId object);
    [[nodiscard]] bool contains(ObjectId object) const { return objects_.contains(object); }
    [[nodiscard]] uint64_t pages(ObjectId object) const;
    [[nodiscard]] int memfd(ObjectId object) const;

    // For objects that threads at home use: faults elsewhere go to the code-fault handler, so that
    // the threads that need the memory move home; and writes at home to lent pages are kept. The
    // object need not be known yet.
    void keep_home() { all_at_home_ = true; }
    void keep_home(ObjectId object) { used_at_home_.insert(object); }
    [[nodiscard]] bool is_used_at_home(ObjectId object) const;
    // Unless all are.
    [[nodiscard]] const std::set<ObjectId>& used_at_home() const { return used_at_home_; }
    // At home: others may write lent pages of this object, too.
    void expect_writers(ObjectId object) { objects_.at(object).has_writers = true; }
    // Node 0: the object's file system may have no room for a page (shared_room.h).
    void expect_no_room(ObjectId object) { objects_.at(object).may_lack_room = true; }
    [[nodiscard]] bool may_lack_room(ObjectId object) const;

    // Node 0: fetches what other nodes have written. Access::write: they keep no copies either.
    Task<void> collect(std::vector<ObjectId> objects, Access access);
    // Node 0: a private mapping and a shared object show the same file. Fetches what other nodes
    // have written of the object in this range, so that it is in the file.
    Task<void> bring_home_below(const Mapping& mapping, Range range);
    // Node 0: until released as often as held, other nodes get no page of the objects.
    void hold(const std::vector<ObjectId>& objects);
    void release(const std::vector<ObjectId>& objects);
    // Whether another node waits for a held page.
    [[nodiscard]] bool holds_back(const std::vector<ObjectId>& objects) const;

    void install(const Install& action);
    std::vector<TakeResult> take(const Take& action);

private:
    struct Object {
        Fd memfd;
        uint64_t pages = 0;
        bool has_writers = false;
        bool may_lack_room = false;
        // At home: the original content of lent pages that home's threads go on writing.
        std::map<uint64_t, std::shared_ptr<const std::byte>> lent;
    };
    void put(PageKey first, std::span<const std::byte> bytes);
    [[nodiscard]] bool is_kept(ObjectId object, const Object& o) const;

    Core& core_;
    Pager& pager_;
    std::unordered_map<ObjectId, Object> objects_;
    bool all_at_home_ = false;  // else only used_at_home_
    std::set<ObjectId> used_at_home_;
};

}  // namespace gpr::paging
