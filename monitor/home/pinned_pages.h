// Pages that a device of an acceptor has pinned do not come home. Program code that touches one
// goes there.
#pragma once

#include <sys/types.h>

#include <memory>

#include "base/address.h"
#include "mm/page_protocol.h"
#include "monitor/home/part.h"

namespace gpr::home {

class PinnedPages {
public:
    explicit PinnedPages(Home& home) : home_(home) {}

    // pinned_at: the acceptor with the device.
    Task<void> pinned_fault(std::shared_ptr<Fragment> fragment, Address at, pid_t tid,
                            NodeId pinned_at);

private:
    void wait_for_pin(Fragment& fragment, Address at, HomeThread* thread, pid_t tid);

    Home& home_;
};

}  // namespace gpr::home
