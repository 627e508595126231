// Hears of the pages that threads wait for, and of those that come, as it happens.
#pragma once

#include "base/address.h"
#include "mm/page_protocol.h"

namespace gpr {

class Fragment;

namespace paging {

class PageObserver {
public:
    virtual ~PageObserver() = default;
    // A thread of the program, or a helper of gpr's in it, needs what this node does not have.
    virtual void on_miss(const Fragment& fragment, Address page, PageKey key, Access access,
                         Tid tid) = 0;
    // Pages are here now, with this right. content: of the first one; none: only a right has come.
    virtual void on_pages(const PageRun& run, Presence presence, ContentKind content) = 0;
    // The page has been here already, with what its threads wait for.
    virtual void on_present(PageKey key) = 0;
};

}  // namespace paging

}  // namespace gpr
