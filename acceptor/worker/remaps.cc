#include "acceptor/worker/remaps.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>

#include "acceptor/worker/contents.h"
#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/mapping_changes.h"
#include "acceptor/worker/memory_calls.h"
#include "acceptor/worker/worker.h"
#include "monitor/node/address_plan.h"
#include "monitor/node/mapping_move.h"
#include "monitor/paging/growth.h"

namespace gpr::worker {

// The caller must hold the `metadata` lock.
Task<int64_t> Remaps::move_one(RemoteProcess& process, Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    int64_t result = -ENOMEM;
    // Growing in place may fail, because the kernel's own pages are not in our list.
    for (bool in_place : {true, false}) {
        auto plan = plan_move(fragment->space, n.args, arena_of(worker_.self), in_place);
        if (!plan) co_return -plan.error();
        plan->move.kept_birth = worker_.self;
        if (plan->keeps && plan->move.kept == 0) plan->move.kept = worker_.next_object++;
        result = co_await worker_.mapping_changes.changes.make_move(fragment, plan->move,
                                                                    plan->apart, worker_.self);
        if (result != -ENOMEM || !(n.args[3] & MREMAP_MAYMOVE)) break;
    }
    co_return result;
}

Task<void> Remaps::move_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    bool takes_more = n.args[2] > n.args[1] || (n.args[3] & MREMAP_DONTUNMAP);
    AddressSpace& space = process.fragment->space;
    Range whole = pages_of(n.args[0], n.args[1]);
    // Cases for home: old_size 0 makes another mapping of shared memory; only home knows whether
    // several file mappings are one, and how much may be locked; and shared memory that becomes
    // visible must be mapped at home first, or home could not give its pages.
    bool of_files = false, is_shared = false, is_locked = false;
    space.overlapping(whole, [&](const Mapping& m) {
        of_files = of_files || m.file;
        is_shared = is_shared || m.shared;
        is_locked = is_locked || m.locked;
    });
    const Range longer{whole.begin, Address{n.args[0] + n.args[2]}.page_end()};
    bool grows_apart = !whole.empty() && !grown_apart(space, whole, longer).empty();
    of_files = of_files && (!is_one_mapping(space, whole) || grows_apart);
    bool home_decides = (is_shared || is_locked) && takes_more;
    bool asks_home = (process.limits_memory && takes_more) || n.args[1] == 0 || of_files ||
                     home_decides || concerns_stack(space, SYS_mremap, n.args);
    if (asks_home) {
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    auto guard = co_await worker_.metadata.lock();
    // What is added belongs to this node.
    if (takes_more) co_await worker_.contents.give_up(process.fragment, whole);
    auto split = split_move(process.fragment->space, n.args);
    int64_t result = 0;
    if (!split) {
        result = co_await move_one(process, n);
        if (result == -no_room) {
            guard.release();
            co_await worker_.forwarding.forward(process, thread, n);
            co_return;
        }
    } else if (!split->cut.empty()) {
        result = co_await worker_.memory_calls.unmap(process, split->cut);
    }
    for (size_t i = 0; split && i < split->moves.size() && result >= 0; i++) {
        Notification part = n;
        std::copy(split->moves[i].begin(), split->moves[i].end(), part.args);
        result = co_await move_one(process, part);
    }
    worker_.counts.native++;
    bool moved = split && result >= 0;
    process.notifier->reply_raw(n.id, moved ? static_cast<int64_t>(n.args[4]) : result);
}

}  // namespace gpr::worker
