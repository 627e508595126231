// Pages of code that must not run on this node. They are missing, so that an instruction fetch
// faults, and the coherence core never installs them: what it fetches is kept here, and installed
// for a moment when the program reads it as data. Executing it meanwhile would cost time, not
// correctness.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/task.h"
#include "mm/address_space.h"
#include "mm/page_actions.h"
#include "mm/page_agent.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class TrappedText {
public:
    TrappedText(Core& core, Pager& pager);

    // The program may change this code from now on. It is no longer trapped, and all pages of it
    // that this node has are installed.
    Task<void> stop_trapping(std::shared_ptr<Fragment> fragment, Range range);
    // Waits until no hide operation is under way that could still remove pages from the addresses
    // of these mappings, which are gone.
    Task<void> forget_trapped(const std::vector<Mapping>& gone);

    // Shows the page for a moment. False if its content must be fetched first.
    bool show_now(Fragment& fragment, Mapping& mapping, Address at);
    void install(const Piece& piece, const Install& action);
    TakeResult take(Mapping& mapping, Address at, bool keep);
    void forget(ObjectId object);
    // Installs trapped code, as far as it is known here, while the kernel copies the process's
    // memory.
    void show(Fragment& fragment, const Mapping& mapping, Range part);
    // Held while code that was shown is removed again.
    auto lock() { return code_lock_.lock(); }

private:
    Task<void> hide_shown();
    void show_code_of_others(Fragment& fragment, const Mapping& m, Range part);

    Core& core_;
    Pager& pager_;
    // Another node's code that was read here as data. Code does not change.
    std::map<PageKey, std::shared_ptr<const std::byte>> code_read_;
    std::vector<std::pair<std::weak_ptr<Fragment>, Address>> shown_;
    AsyncMutex code_lock_;
};

}  // namespace gpr::paging
