// Faults of threads at home that are not what the kernel takes them for: below mappings that grow
// downwards, and beyond the end of a file.

#include "monitor/paging/growth.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <csignal>

#include "monitor/home/session.h"

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

bool HomeSession::meets_end_of_file(HomeThread& thread) {
    HomeProcess& process = *thread.process;
    if (thread.remote || process.state != HomeProcess::State::split) return false;
    auto info = trace::signal_info(thread.tid);
    if (!info || !pager_.absent_page(*process.fragment, *info)) return false;
    spawn(bus_error(process.fragment, thread.tid, *info));
    return true;
}

// The thread is stopped by the signal.
Task<void> HomeSession::bus_error(std::shared_ptr<Fragment> fragment, pid_t tid, siginfo_t info) {
    auto at = pager_.absent_page(*fragment, info);
    bool beyond = at && co_await pager_.is_beyond_end(fragment, *at, static_cast<Tid>(tid));
    auto it = threads_.find(tid);
    if (it == threads_.end()) co_return;
    if (!beyond) {
        trace::resume(tid);
        co_return;
    }
    trace::set_signal_info(tid, end_of_file_info(info));
    on_signal(*it->second, SIGBUS);
}

}  // namespace gpr
