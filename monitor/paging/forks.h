// Forks, during which no page of the process moves. Either node 0 first gets all pages and its
// kernel copies them (forks.cc); a missing page would read as zeros in the copy, which has no
// userfaultfd. Or memory stays where it is (fork_copies.cc): each kernel copies the pages in its
// memory, and each node copies what it knows about the pages.
// docs/decisions/0018-forks-copy-where-pages-are.md
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/address.h"
#include "base/task.h"
#include "mm/page_protocol.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class Forks {
public:
    Forks(Core& core, Pager& pager) : core_(core), pager_(pager) {}

    // Node 0, around the kernel's copy of the process's memory. Between the two, everything that
    // other nodes wrote and all trapped code is in memory here. Pages of private file mappings that
    // nobody has touched are filled from their file. Where the caller maps the files again in place
    // of their copies, those are left, as reading gigabytes takes seconds.
    enum class FileCopies { filled, left };
    Task<void> begin_fork(std::shared_ptr<Fragment> fragment,
                          FileCopies copies = FileCopies::filled);
    Task<void> end_fork(std::shared_ptr<Fragment> fragment);
    // Between the two: fills what begin_fork() has left.
    Task<void> fill(std::shared_ptr<Fragment> fragment, FileCopies copies = FileCopies::filled);
    static bool is_copy_of_file(const Mapping& mapping);

    // On every node, around a fork that leaves memory where it is: no page of the process moves.
    // begin_copy() ends when this node sees none in motion; check is_quiet() again once the other
    // nodes have said the same.
    Task<void> begin_copy(std::shared_ptr<Fragment> fragment);
    Task<void> quiet(std::shared_ptr<Fragment> fragment);
    [[nodiscard]] bool is_quiet(const Fragment& fragment) const;
    void end_copy(Fragment& fragment);
    // Write-protects, in memory that the kernel has copied, the pages that other nodes share.
    void protect_copies(Fragment& fragment);

    [[nodiscard]] bool any() const { return !forking_.empty(); }
    [[nodiscard]] bool is_forking(Fragment& fragment) const { return forking_.contains(&fragment); }
    void forget(Fragment& fragment);

private:
    // Fetches every page of the process that other nodes have touched.
    Task<void> collect(Fragment& fragment);
    Task<void> arrived(Fragment& fragment);
    bool fill_part(Fragment& fragment, const Mapping& m, Range part);

    struct Forking {
        int count = 0;               // forks in progress
        std::vector<ObjectId> held;  // by the directory, until `count` is 0
    };

    Core& core_;
    Pager& pager_;
    std::map<Fragment*, Forking> forking_;
};

}  // namespace gpr::paging
