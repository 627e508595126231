#include "monitor/home/main_stack.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>

#include "monitor/home/home.h"
#include "monitor/home/layouts.h"
#include "monitor/paging/growth.h"
#include "monitor/tracee/process_stat.h"

namespace gpr::home {

Address MainStack::used(HomeProcess& process) {
    Fragment& fragment = *process.fragment;
    auto stack = main_stack(fragment.space);
    if (!stack) return {};
    Address used = std::clamp(process.stack_used, stack->begin, stack->end);
    if (stack->begin < used) used = fragment.first_present({stack->begin, used});
    fragment.space.overlapping({stack->begin, used}, [&](const Mapping& m) {
        uint64_t end = m.key(std::min(m.range.end, used) - 1).index + 1;
        uint64_t page = home_.directory.next_known(m.object, m.object_page, end);
        if (page >= end) return;
        used = std::min(used, m.range.begin + (page - m.object_page) * page_size);
    });
    return process.stack_used = used;
}

Task<void> MainStack::fit(HomeProcess& process) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto stack = main_stack(fragment->space);
    const auto limit = limit_of(process.pid, RLIMIT_STACK);
    if (!stack || !limit) co_return;
    Address begin = stack_floor(fragment->space, *stack, used(process),
                                std::min<uint64_t>(limit->rlim_cur, most_room));
    if (begin > stack->begin) co_await cut(process, {stack->begin, begin});
    if (begin >= stack->begin) co_return;
    Mapping m;
    m.range = {begin, stack->begin};
    m.prot = fragment->space.find(stack->begin)->prot;
    m.grows_down = m.main_stack = true;
    m.object = home_.layouts.new_object(directory_node);
    // A mapping of its own, because the kernel extends a stack only by a fault.
    int64_t result = co_await fragment->executor().call(
        SYS_mmap, begin.value, m.range.size(), static_cast<uint64_t>(m.prot),
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, ~0UL, 0);
    if (result != static_cast<int64_t>(begin.value)) co_return;
    if (process.started_remotely) home_.layouts.announce(process, m);
    fragment->space.map(std::move(m));
}

Task<void> MainStack::cut(HomeProcess& process, Range range) {
    if (range.empty()) co_return;
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto alone = co_await home_.pager.ranges.lock(fragment, range);
    co_await fragment->executor().call(SYS_munmap, range.begin.value, range.size());
    co_await home_.layouts.changes.unmap(fragment, range, directory_node);
}

Task<void> MainStack::make_room(HomeProcess& process, Range wanted) {
    auto stack = main_stack(process.fragment->space);
    if (!stack) co_return;
    Address low = used(process);
    co_await cut(process, stack_in_the_way(*stack, low, wanted));
}

Task<void> MainStack::note_limit(HomeProcess& caller, uint64_t number, const uint64_t* args) {
    bool own = number == SYS_setrlimit || args[0] == 0;
    bool sets = number == SYS_setrlimit
                    ? args[0] == RLIMIT_STACK
                    : number == SYS_prlimit64 && args[1] == RLIMIT_STACK && args[2] != 0;
    if (!sets) co_return;
    pid_t pid = own ? caller.pid : static_cast<pid_t>(args[0]);
    auto guard = co_await home_.metadata.lock();
    HomeProcess* of = home_.find_process(pid);
    bool split = of && of->fragment && of->state == HomeProcess::State::split;
    if (split) co_await fit(*of);
}

void MainStack::inherit(HomeProcess& parent, HomeProcess& child) {
    child.inherited_growing = parent.inherited_growing;
    child.stack_used = parent.stack_used;
    if (!parent.fragment) return;
    child.stack_used = used(parent);
    child.inherited_growing.clear();
    for (const auto& [begin, m] : parent.fragment->space.all()) {
        if (m.grows_down) child.inherited_growing.emplace_back(m.range, m.main_stack);
    }
}

Task<void> MainStack::read(HomeProcess& process, Range shown) {
    AddressSpace& space = process.fragment->space;
    for (const auto& [range, main] : std::exchange(process.inherited_growing, {})) {
        space.for_each(range, [is_main = main](Mapping& m) {
            m.grows_down = true;
            m.main_stack = is_main;
        });
    }
    if (process.new_image) process.stack_used = shown.begin;
    space.for_each(shown, [](Mapping& m) { m.grows_down = m.main_stack = true; });
    co_await fit(process);
}

}  // namespace gpr::home
