// Pages that a device of the acceptor has pinned do not come home. Program code that touches one
// goes there.
#pragma once

#include <sys/types.h>

#include <memory>

#include "base/address.h"
#include "monitor/home/part.h"

namespace gpr::home {

class PinnedPages {
public:
    explicit PinnedPages(Home& home) : home_(home) {}

    Task<void> pinned_fault(std::shared_ptr<Fragment> fragment, Address at, pid_t tid);

private:
    void wait_for_pin(Fragment& fragment, Address at, HomeThread* thread, pid_t tid);

    Home& home_;
};

}  // namespace gpr::home
