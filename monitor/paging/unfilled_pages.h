// Memory whose missing pages the program itself provides (userfaultfd). Pages are held and moved
// like any others, except that an untouched page is not created on demand: the program is told, and
// fills it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "base/address.h"
#include "base/task.h"
#include "mm/page_protocol.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class UnfilledPages {
public:
    UnfilledPages(Core& core, Pager& pager);

    // Called when a thread here waits for such a page.
    using AskProgram = std::function<void(Fragment&, Address at, bool write, Tid tid)>;
    void on_unfilled(AskProgram asks) { ask_program_ = std::move(asks); }
    void let_program_fill(Fragment& fragment, Range range, bool fills);
    void wake_unfilled(Fragment& fragment, Range range);
    Task<int> fill(std::shared_ptr<Fragment> fragment, Address at, std::span<const std::byte> page);

    [[nodiscard]] bool is_unfilled(Fragment& fragment, const Mapping& m, Address at) const;
    void note_unfilled(Fragment& fragment, Address at, bool write, Tid tid);
    void tell_unfilled(Fragment& fragment, Address at);
    Task<bool> wait_for_program(std::shared_ptr<Fragment> fragment, Address at, bool write);
    void look_again() { filled_.notify_all(); }
    void forget(Fragment& fragment);

private:
    Core& core_;
    Pager& pager_;
    AskProgram ask_program_;
    // The threads that wait for the program to fill a page, and whether they want to write.
    std::map<std::pair<Fragment*, Address>, std::pair<Tid, bool>> unfilled_;
    Signal filled_;
};

}  // namespace gpr::paging
