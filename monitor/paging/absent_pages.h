// Pages of a private file mapping beyond the end of the file. Natively, touching one raises SIGBUS,
// and a system call that does fails with EFAULT; once the file has grown the page is there. So such
// a page is poisoned for a moment and then missing again, and later touches are decided anew.
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

    // For a thread that got this signal: the page that caused it, if its file may end before that.
    std::optional<Address> absent_page(Fragment& fragment, const siginfo_t& info) const;
    // Whether the file does end before that page. If not, the thread may touch the page again.
    Task<bool> is_beyond_end(std::shared_ptr<Fragment> fragment, siginfo_t info, Tid tid);

    void note_refused(Tid tid, PageKey key);
    void refuse_page(Fragment& fragment, const Mapping& mapping, Address at);
    // Installs the page's initial content, or refuses the page if its file ends before it.
    void give_born(Fragment& fragment, const Mapping& mapping, Address at);
    void forget(Tid tid) { refused_.erase(tid); }

private:
    Core& core_;
    Pager& pager_;
    // The last page of which a thread has learnt that it does not exist.
    struct Refusal {
        PageKey key;
        bool unseen = false;  // the thread has not had a signal for it yet
        bool touched_again = false;
    };
    std::unordered_map<Tid, Refusal> refused_;
};

}  // namespace gpr::paging
