#include "acceptor/worker/growth.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <csignal>

#include "acceptor/worker/signals.h"
#include "acceptor/worker/worker.h"
#include "monitor/node/mapping_news.h"
#include "monitor/paging/growth.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::worker {

bool Growth::mends_fault(RemoteProcess& process, RemoteThread& thread, const siginfo_t& info) {
    if (!process.fragment) return false;
    if (worker_.pager.absent.absent_page(*process.fragment, info)) {
        spawn(bus_error(process.pid, thread.tid, info));
        return true;
    }
    if (!growth_for(process.fragment->space, info)) return false;
    spawn(grow_down(process, thread, info));
    return true;
}

// The thread is stopped by the signal, which it will not see: it touches the page again.
Task<void> Growth::grow_down(RemoteProcess& process, RemoteThread& thread, siginfo_t info) {
    auto guard = co_await worker_.metadata.lock();
    std::shared_ptr<Fragment> fragment = process.fragment;
    pid_t host_tid = thread.host_tid;
    if (auto m = growth_for(fragment->space, info)) {  // else it is there by now
        m->object = worker_.next_object++;
        m->born_at_acceptor = true;
        int64_t result = co_await fragment->executor().call(
            SYS_mmap, m->range.begin.value, m->range.size(), static_cast<uint64_t>(m->prot),
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, ~0UL, 0);
        if (result != static_cast<int64_t>(m->range.begin.value)) {
            trace::resume(host_tid, SIGSEGV);
            co_return;
        }
        worker_.pager.objects.add(m->object, worker_.self);
        tell_mapped(worker_.link, process.pid, *m, 0);
        fragment->space.map(std::move(*m));
    }
    trace::resume(host_tid);
}

// The thread is stopped by the signal.
Task<void> Growth::bus_error(pid_t pid, pid_t tid, siginfo_t info) {
    RemoteProcess* process = worker_.find_process(pid);
    if (!process || !process->fragment) co_return;
    std::shared_ptr<Fragment> fragment = process->fragment;
    auto at = worker_.pager.absent.absent_page(*fragment, info);
    bool beyond =
        at && co_await worker_.pager.absent.is_beyond_end(fragment, *at, static_cast<Tid>(tid));
    process = worker_.find_process(pid);
    RemoteThread* thread = worker_.find_thread(pid, tid);
    if (!process || !thread) co_return;
    if (!beyond) {
        trace::resume(thread->host_tid);
        co_return;
    }
    trace::set_signal_info(thread->host_tid, end_of_file_info(info));
    worker_.signals.on_signal_stop(*process, *thread, SIGBUS);
}

}  // namespace gpr::worker
