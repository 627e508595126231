// Forks, while which no page of the process moves. Either node 0 has all of them and its kernel
// copies them (forks.cc): what is missing here would be zeros in the copy, which nobody watches. Or
// memory stays where it is (fork_copies.cc): each kernel copies what is in memory there, and every
// node what it knows of the pages. docs/decisions/0018-forks-copy-where-pages-are.md
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/task.h"
#include "mm/page_protocol.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class Forks {
public:
    Forks(Core& core, Pager& pager) : core_(core), pager_(pager) {}

    // Node 0, around a kernel's copy of the process's memory: all that others wrote, and all
    // trapped code, is here from the end of the first to the beginning of the second.
    Task<void> begin_fork(std::shared_ptr<Fragment> fragment);
    Task<void> end_fork(std::shared_ptr<Fragment> fragment);

    // On both nodes, around a fork whose memory stays where it is: no page of the process moves.
    // The first ends when none does as far as this node can tell: ask again when the others have
    // said the same.
    Task<void> begin_copy(std::shared_ptr<Fragment> fragment);
    Task<void> quiet(std::shared_ptr<Fragment> fragment);
    [[nodiscard]] bool is_quiet(const Fragment& fragment) const;
    void end_copy(Fragment& fragment);
    // Marks what is shared with other nodes in memory that the kernel has copied.
    void protect_copies(Fragment& fragment);

    [[nodiscard]] bool any() const { return !forking_.empty(); }
    [[nodiscard]] bool is_forking(Fragment& fragment) const { return forking_.contains(&fragment); }
    void forget(Fragment& fragment);

private:
    // Brings every page of the process that was touched elsewhere here.
    Task<void> collect(Fragment& fragment);
    Task<void> arrived(Fragment& fragment);

    struct Forking {
        int count = 0;               // forks that have begun and not ended
        std::vector<ObjectId> held;  // by the directory, until there is none
    };

    Core& core_;
    Pager& pager_;
    std::map<Fragment*, Forking> forking_;
};

}  // namespace gpr::paging
