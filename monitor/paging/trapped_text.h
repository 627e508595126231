// Pages of code that must not run on this node. They are missing, so that a fetch faults, and the
// coherence core never maps them: what it brings is kept beside, and put in place for a moment
// when the program reads it as data. Running it here would cost time, not correctness.
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

    // The program may change code there from now on: it is not trapped any more, and all that this
    // node has of it is in place.
    Task<void> stop_trapping(std::shared_ptr<Fragment> fragment, Range range);
    // Code that was there is gone: nothing that was to hide it touches what is there now.
    Task<void> forget_trapped(const std::vector<Mapping>& gone);

    // For a moment. False: it must be asked for.
    bool show_now(Fragment& fragment, Mapping& mapping, Address at);
    void install(const Piece& piece, const Install& action);
    TakeResult take(Mapping& mapping, Address at, bool keep);
    void forget(ObjectId object);
    // For a kernel's copy of the process's memory, until that is removed again.
    void show_all(Fragment& fragment);
    // Held while code that was shown is hidden.
    auto lock() { return code_lock_.lock(); }

private:
    Task<void> hide_shown();
    void show_code_of_others(Fragment& fragment, const Mapping& m);

    Core& core_;
    Pager& pager_;
    // Code of the other node that was read here as data; text does not change.
    std::map<PageKey, std::shared_ptr<const std::byte>> code_read_;
    std::vector<std::pair<std::weak_ptr<Fragment>, Address>> shown_;
    AsyncMutex code_lock_;
};

}  // namespace gpr::paging
