// Mappings that grow downwards, touched by threads at home.

#include <sys/mman.h>
#include <sys/syscall.h>

#include <csignal>

#include "monitor/growth.h"
#include "monitor/home_session.h"

namespace gpr {

// True: the signal was a touch right below such a mapping, and is dealt with.
bool HomeSession::grows_for(HomeThread& thread) {
    HomeProcess& process = *thread.process;
    if (thread.remote || process.state != HomeProcess::State::split) return false;
    auto info = trace::signal_info(thread.tid);
    if (!info || !growth_for(process.fragment->space, *info)) return false;
    spawn(grow_down(process, thread, *info));
    return true;
}

// The thread is stopped by the signal, which it will not see: it touches the page again.
Task<void> HomeSession::grow_down(HomeProcess& process, HomeThread& thread, siginfo_t info) {
    auto guard = co_await metadata_.lock();
    std::shared_ptr<Fragment> fragment = process.fragment;
    pid_t tid = thread.tid;
    if (auto m = growth_for(fragment->space, info)) {  // else it is there by now
        m->object = new_object(directory_node);
        int64_t result = co_await fragment->executor().call(
            SYS_mmap, m->range.begin.value, m->range.size(), static_cast<uint64_t>(m->prot),
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, ~0UL, 0);
        if (result != static_cast<int64_t>(m->range.begin.value)) {
            trace::resume(tid, SIGSEGV);
            co_return;
        }
        announce(process, *m);
        fragment->space.map(std::move(*m));
    }
    trace::resume(tid);
}

}  // namespace gpr
