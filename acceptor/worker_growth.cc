// Mappings that grow downwards, touched by threads here.

#include <sys/mman.h>
#include <sys/syscall.h>

#include <csignal>

#include "acceptor/worker.h"
#include "monitor/growth.h"
#include "monitor/mapping_news.h"

namespace gpr {

bool Worker::grows_for(RemoteProcess& process, RemoteThread& thread, const siginfo_t& info) {
    if (!process.fragment || !growth_for(process.fragment->space, info)) return false;
    spawn(grow_down(process, thread, info));
    return true;
}

// The thread is stopped by the signal, which it will not see: it touches the page again.
Task<void> Worker::grow_down(RemoteProcess& process, RemoteThread& thread, siginfo_t info) {
    auto guard = co_await metadata_.lock();
    std::shared_ptr<Fragment> fragment = process.fragment;
    pid_t host_tid = thread.host_tid;
    if (auto m = growth_for(fragment->space, info)) {  // else it is there by now
        m->object = next_object_++;
        m->born_at_acceptor = true;
        int64_t result = co_await fragment->executor().call(
            SYS_mmap, m->range.begin.value, m->range.size(), static_cast<uint64_t>(m->prot),
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, ~0UL, 0);
        if (result != static_cast<int64_t>(m->range.begin.value)) {
            trace::resume(host_tid, SIGSEGV);
            co_return;
        }
        pager_.add_object(m->object, self_);
        tell_mapped(link_, process.pid, *m, 0);
        fragment->space.map(std::move(*m));
    }
    trace::resume(host_tid);
}

}  // namespace gpr
