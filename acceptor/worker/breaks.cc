#include "acceptor/worker/breaks.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/mapping_changes.h"
#include "acceptor/worker/worker.h"
#include "monitor/node/address_plan.h"

namespace gpr::worker {

namespace {

// More at once is home's to decide: whether there is so much memory.
constexpr uint64_t most_grown = 4ULL << 20;
// What the kernel keeps free behind a break, at the most: a page, or the gap below a stack.
constexpr uint64_t kept_free = 257 * page_size;

}  // namespace

Task<void> Breaks::break_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    const bool answered = co_await answer(process, n);
    if (answered) co_return;
    std::shared_ptr<OwnBreak> own = process.own_break;
    own->end = 0;
    own->asked++;
    const uint64_t forgotten = own->forgotten;
    const pid_t pid = process.pid, tid = thread.tid;
    thread.offered_break = {};
    co_await worker_.forwarding.forward(process, thread, n);
    own->asked--;
    if (worker_.find_thread(pid, tid) != &thread) co_return;
    const OwnBreak offered = std::exchange(thread.offered_break, {});
    // Where calls overlap, only home knows which came last.
    const bool holds = own->asked == 0 && own->forgotten == forgotten && !is_off_;
    if (offered.end == 0 || !holds) co_return;
    own->end = offered.end;
    own->object = offered.object;
}

void Breaks::note_answer(RemoteThread& thread, wire::CallReply::Reader answer) {
    if (!answer.getMovesBreak() || answer.getResult() <= 0) return;
    thread.offered_break.end = static_cast<uint64_t>(answer.getResult());
    thread.offered_break.object = answer.getBreakObject();
}

void Breaks::forget(RemoteProcess& process) {
    process.own_break->end = 0;
    process.own_break->forgotten++;
}

// False: home is to be asked.
Task<bool> Breaks::answer(RemoteProcess& process, Notification n) {
    std::shared_ptr<OwnBreak> own = process.own_break;
    if (own->end == 0) co_return false;
    const pid_t pid = process.pid;
    auto notifier = process.notifier;
    auto guard = co_await worker_.metadata.lock();
    if (worker_.find_process(pid) != &process || process.own_break != own) co_return true;
    if (own->end == 0) co_return false;
    uint64_t wanted = n.args[0] == 0 ? own->end : n.args[0];
    bool done = wanted == own->end;
    if (!done) done = co_await grow(process, wanted);
    if (!done) co_return false;
    worker_.counts.native++;
    notifier->reply_raw(n.id, static_cast<int64_t>(wanted));
    co_return true;
}

// The caller must hold the `metadata` lock.
Task<bool> Breaks::grow(RemoteProcess& process, uint64_t end) {
    std::shared_ptr<OwnBreak> own = process.own_break;
    std::shared_ptr<Fragment> fragment = process.fragment;
    AddressSpace& space = fragment->space;
    if (end < own->end || end - own->end > most_grown || process.limits_memory ||
        space.lock_of_new() != LockOfNew::none) {
        co_return false;
    }
    const pid_t pid = process.pid;
    auto change = plan_break(own->end, end);
    if (!change) {
        own->end = end;
        worker_.tell(pid, BreakMoved{end, 0});
        co_return true;
    }
    Mapping made = std::get<Mapped>(*change).mapping;
    const Range range = made.range, wanted_free{range.begin, range.end + kept_free};
    if (!is_place(range) || wanted_free.overlaps(reserved_range) || !space.is_free(wanted_free)) {
        co_return false;
    }
    made.birth = worker_.self;
    Mapping longer = made;
    const bool extends =
        own->object != 0 && continue_object_below(space, longer) && longer.object == own->object;
    if (extends) made = std::move(longer);
    if (!extends) made.object = worker_.next_object++;
    const uint64_t forgotten = own->forgotten;
    auto alone = co_await worker_.pager.ranges.lock(fragment, range);
    const int64_t at = co_await fragment->executor().call(
        SYS_mmap, range.begin.value, range.size(), PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, ~0UL, 0);
    if (at != static_cast<int64_t>(range.begin.value)) co_return false;
    if (own->forgotten != forgotten) {  // a thread that may move it is on its way home
        co_await fragment->executor().call(SYS_munmap, range.begin.value, range.size());
        co_return false;
    }
    own->end = end;
    own->object = made.object;
    if (!extends) worker_.pager.objects.add(made.object, made.birth);
    auto replaced = worker_.mapping_changes.changes.replace(*fragment, std::move(made));
    worker_.tell(pid, BreakMoved{end, own->object});
    alone.release();
    co_await worker_.mapping_changes.changes.settle(fragment, std::move(replaced));
    co_return true;
}

}  // namespace gpr::worker
