#include "monitor/home/guard_pages.h"

#include <sys/syscall.h>

#include <cerrno>

#include "base/uapi/mman.h"
#include "monitor/home/home.h"
#include "monitor/home/layouts.h"
#include "monitor/node/address_plan.h"
#include "monitor/node/advice.h"

namespace gpr::home {

Task<int64_t> GuardPages::change(HomeProcess& process, StubThread& stub, Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    Address begin{n.args[0]};
    bool install = n.args[2] == MADV_GUARD_INSTALL;
    Range whole{begin, (begin + n.args[1]).page_end()};
    Range range = install ? before_locked(fragment->space, whole) : whole;
    bool refused = range != whole;  // locked memory cannot have guards
    if (refused && range.empty()) co_return -EINVAL;
    if (!fragment->guards({begin.page(), begin.page() + page_size})) co_return -EINVAL;
    auto alone = co_await home_.pager.ranges.lock(fragment, range);
    uint64_t size = refused ? range.size() : n.args[1];
    int64_t result = co_await stub.call(SYS_madvise, begin.value, size, n.args[2]);
    // ENOMEM: there are gaps, but the mapped parts have been changed.
    if ((result != 0 && result != -ENOMEM) || range.empty() || stub.dead()) co_return result;
    if (install) {
        auto pieces = private_pieces(fragment->space, range);
        home_.layouts.changes.note_discarded(*fragment, range, pieces);
        fragment->wake(range);
    }
    home_.acceptors.tell(process.pid, Guarded{range, install});
    co_return refused ? -EINVAL : result;
}

void GuardPages::tell_all(HomeProcess& process) {
    if (process.new_image && !process.has_rested) return;  // it has none yet
    for (const auto& [begin, m] : process.fragment->space.all()) {
        auto guards = process.fragment->guards(m.range);
        if (!guards) return;
        for (Range range : *guards) home_.acceptors.tell(process.pid, Guarded{range, true});
    }
}

}  // namespace gpr::home
