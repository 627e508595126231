// Pages beyond the end of a file that a private mapping shows. Natively whoever touches one dies of
// SIGBUS, or its system call fails with EFAULT, but once the file has grown the page is there. So
// it is poisoned for a moment, and then missing again: who comes later is answered anew.
#pragma once

#include <signal.h>

#include <memory>
#include <optional>
#include <unordered_map>

#include "base/address.h"
#include "base/task.h"
#include "mm/page_protocol.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class AbsentPages {
public:
    AbsentPages(Core& core, Pager& pager) : core_(core), pager_(pager) {}

    // The signal may be for a page that is not there: its file ends before it. Whether it is; else
    // the thread may touch it again.
    std::optional<Address> absent_page(Fragment& fragment, const siginfo_t& info) const;
    Task<bool> is_beyond_end(std::shared_ptr<Fragment> fragment, Address at, Tid tid);

    void note_refused(Tid tid, PageKey key);
    void refuse_page(Fragment& fragment, const Mapping& mapping, Address at);
    // What the page was born with, if its file has it.
    void give_born(Fragment& fragment, const Mapping& mapping, Address at);
    void forget(Tid tid) { refused_.erase(tid); }

private:
    Core& core_;
    Pager& pager_;
    // What a thread was told last not to be there.
    struct Refusal {
        PageKey key;
        bool unseen = false;  // it has not got a signal for that yet
        bool touched_again = false;
    };
    std::unordered_map<Tid, Refusal> refused_;
};

}  // namespace gpr::paging
