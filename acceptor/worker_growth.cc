// MAP_GROWSDOWN: a mapping grows when it is touched below its start. The kernel of this node does
// not know that of ours, so what it makes of such a touch is a SIGSEGV.

#include <sys/mman.h>
#include <sys/syscall.h>

#include <csignal>

#include "acceptor/worker.h"
#include "monitor/mapping_news.h"

namespace gpr {

namespace {
// Linux keeps that much free below a stack (stack_guard_gap).
constexpr uint64_t guard_gap = 256 * page_size;
}  // namespace

bool Worker::grows_for(RemoteProcess& process, RemoteThread& thread, int signal) {
    if (signal != SIGSEGV || !process.fragment) return false;
    auto info = trace::signal_info(thread.host_tid);
    if (!info || info->si_code != SEGV_MAPERR) return false;
    Address at{reinterpret_cast<uint64_t>(info->si_addr)};
    AddressSpace& space = process.fragment->space;
    Mapping* above = space.find_from(at);
    if (!above || !above->grows_down || above->range.contains(at)) return false;
    if (at.value < guard_gap + page_size) return false;
    if (!space.is_free({Address{at.value - guard_gap}.page(), above->range.begin})) return false;
    spawn(grow_down(process, thread, at));
    return true;
}

// The thread is stopped by the signal, which it will not see: it touches the page again.
Task<void> Worker::grow_down(RemoteProcess& process, RemoteThread& thread, Address to) {
    auto guard = co_await metadata_.lock();
    std::shared_ptr<Fragment> fragment = process.fragment;
    pid_t host_tid = thread.host_tid;
    Mapping* above = fragment->space.find_from(to);
    bool still = above && above->grows_down && !above->range.contains(to);  // else it is there
    if (still) {
        Mapping m;
        m.range = {to.page(), above->range.begin};
        m.prot = above->prot;
        m.object = next_object_++;
        m.born_at_acceptor = m.grows_down = true;
        int64_t result = co_await fragment->executor().call(
            SYS_mmap, m.range.begin.value, m.range.size(), static_cast<uint64_t>(m.prot),
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, ~0UL, 0);
        if (result != static_cast<int64_t>(m.range.begin.value)) {
            trace::resume(host_tid, SIGSEGV);
            co_return;
        }
        pager_.add_object(m.object, self_);
        tell_mapped(link_, process.pid, m, 0);
        fragment->space.map(std::move(m));
    }
    trace::resume(host_tid);
}

}  // namespace gpr
