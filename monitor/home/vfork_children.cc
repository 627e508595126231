#include "monitor/home/vfork_children.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <climits>
#include <utility>

#include "monitor/home/contended_memory.h"
#include "monitor/home/debugged_process.h"
#include "monitor/home/futexes.h"
#include "monitor/home/home.h"
#include "monitor/home/memory_calls.h"
#include "monitor/home/proxy_calls.h"
#include "monitor/home/shared_memory.h"
#include "monitor/node/advice.h"
#include "monitor/node/guard_advice.h"
#include "syscall/table.h"

namespace gpr::home {

namespace {
constexpr int descriptor_of_executor = 3;  // the executor has no descriptors of its own
// By then a child of vfork has usually called exec.
constexpr std::chrono::milliseconds held_up_for{50};
}  // namespace

void VforkChildren::on_end(HomeThread& thread) {
    HomeProcess* owner = owner_of_memory(*thread.process);
    if (owner && owner->debugged) owner->debugged->on_child(nullptr, thread.process->pid, true);
    uint64_t at = std::exchange(thread.clear_tid, 0);
    if (owner && at != 0) spawn(clear_tid(owner->pid, {at}, thread.tid));
}

// A vfork child has ended or called exec here. The kernel skips clear_child_tid if that page is
// missing, so it is done here.
Task<void> VforkChildren::clear_tid(pid_t owner, Address at, pid_t tid) {
    HomeProcess* process = home_.find_process(owner);
    if (!process || !process->fragment) co_return;
    std::shared_ptr<Fragment> fragment = process->fragment;
    pid_t word = 0;
    bool read = co_await home_.pager.memory.read(*fragment, at,
                                                 std::as_writable_bytes(std::span(&word, 1)));
    if (read && word == tid) {
        word = 0;
        co_await home_.pager.memory.write(*fragment, at, std::as_bytes(std::span(&word, 1)));
    }
    FutexWakeCall wake{at.value, INT_MAX, 0xffffffff, true};
    process = home_.find_process(owner);
    if (process) home_.futexes.send_futex_wake(*process, wake);
    co_await wake_futex_held(home_.pager, *fragment, wake);
}

// nullptr if the owner has not been split, has ended or is in exec: then the vfork child's calls
// need no help.
HomeProcess* VforkChildren::owner_of_memory(const HomeProcess& child) const {
    std::shared_ptr<Fragment> memory = child.memory_of_parent.lock();
    if (!memory || !memory->has_helpers()) return nullptr;
    for (const auto& [pid, owner] : home_.processes) {
        if (owner->fragment != memory) continue;
        bool split = owner->state == HomeProcess::State::split && owner->started_remotely;
        return split ? owner.get() : nullptr;
    }
    return nullptr;
}

bool VforkChildren::changes_memory(const Notification& n) {
    const MemoryCall call = memory_call_of(n.number);
    if (call == MemoryCall::advise) {
        return drops_content(n.args[2]) || is_guard_advice(n.number, n.args);
    }
    return call != MemoryCall::none && call != MemoryCall::seal;
}

// From now on the process runs at the acceptor while children that share its memory run here.
// Shared memory would differ between the two, so it is used at home.
void VforkChildren::begin_sharing(HomeProcess& process) {
    if (std::exchange(process.has_vfork_children, true)) return;
    for (auto& [object, file] : home_.shared_memory.files()) {
        home_.contended_memory.choose_node(file);
    }
}

// Keeps shared memory at home around the birth of such a child, and for vfork until the child execs
// or ends. Other processes that want a page of it wait meanwhile, but not for long: the child may
// be waiting for one of them.
Task<std::shared_ptr<HeldUp>> VforkChildren::hold_up(HomeProcess& process, bool is_vfork) {
    auto held = std::make_shared<HeldUp>();
    std::shared_ptr<Fragment> fragment = process.fragment;
    for (auto& [object, file] : home_.shared_memory.files()) {
        if (fragment->space.shows(object)) held->objects.push_back(object);
    }
    if (!is_vfork) begin_sharing(process);
    home_.pager.shared.hold(held->objects);
    std::vector<ObjectId> objects = held->objects;
    if (home_.acceptors.reachable()) {
        co_await home_.pager.shared.collect(std::move(objects), Access::write);
    }
    if (!is_vfork) co_return held;
    home_.loop.after(held_up_for, [this, held, pid = process.pid] {
        HomeProcess* owner = held->objects.empty() ? nullptr : home_.find_process(pid);
        if (owner && home_.pager.shared.holds_back(held->objects)) begin_sharing(*owner);
        home_.pager.shared.release(std::exchange(held->objects, {}));
    });
    co_return held;
}

// The memory belongs to the owner, whose executor makes the call.
Task<void> VforkChildren::memory_call(pid_t child, Notification n) {
    auto guard = co_await home_.metadata.lock();
    if (!home_.notifier->still_valid(n.id)) co_return;  // interrupted: the thread calls again
    std::shared_ptr<ProxyCall> call = co_await home_.proxy_calls.begin(child, n);
    if (!call) co_return;
    HomeProcess* process = home_.find_process(child);
    HomeProcess* owner = process ? owner_of_memory(*process) : nullptr;
    if (owner) {
        co_await home_.memory_calls.save_hidden(*owner, n);
        process = home_.find_process(child);
        owner = process ? owner_of_memory(*process) : nullptr;
    }
    std::optional<int64_t> result;
    if (owner && !owner->fragment->executor().dead()) {
        result = co_await call_of_vfork_child(*owner, child, n);
    }
    home_.proxy_calls.finish(child, n, call, result);
}

// nullopt if the memory has no executor any more.
Task<std::optional<int64_t>> VforkChildren::call_of_vfork_child(HomeProcess& owner, pid_t child,
                                                                Notification n) {
    std::shared_ptr<Fragment> fragment = owner.fragment;
    const Row* row = find_row(n.number);
    if (row && row->handlers.here == AtHome::lock) {
        co_return home_.memory_calls.lock_memory(owner, child, n.number, n.args);
    }
    if (n.number == SYS_madvise) {
        int error = advice_error(fragment->space, n.args);
        if (error != 0) co_return -error;
        if (is_guard_advice(n.number, n.args) && !home_.acceptors.guard()) co_return -EINVAL;
    }
    Notification made = n;
    bool of_file = n.number == SYS_mmap && !(n.args[3] & MAP_ANONYMOUS);
    if (of_file) {
        Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
        Fd file(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), n.args[4], 0)));
        bool passed =
            file && co_await fragment->executor().take_fd(file.get(), descriptor_of_executor);
        if (!passed) co_return -EBADF;
        made.args[4] = descriptor_of_executor;
    }
    int64_t result =
        co_await home_.memory_calls.change_memory(owner, fragment->executor(), n, made, child);
    if (fragment->executor().dead()) co_return std::nullopt;
    if (of_file) co_await fragment->executor().call(SYS_close, descriptor_of_executor);
    co_return result;
}

}  // namespace gpr::home
