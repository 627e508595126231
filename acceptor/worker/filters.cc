#include "acceptor/worker/filters.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/signals.h"
#include "acceptor/worker/threads.h"
#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::worker {

namespace {
std::string not_installed(int64_t result) {
    return fmt::format("a seccomp filter of the program cannot be installed: {}",
                       strerror(static_cast<int>(-result)));
}
}  // namespace

// Home installs the filter first, and decides whether that is allowed.
Task<void> Filters::filter_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    std::array<uint64_t, 6> args;
    std::copy(n.args, n.args + 6, args.begin());
    auto call = co_await read_filter_call(worker_.pager, fragment, n.number, args);
    if (call.all_threads) {
        // TSYNC would fail in this kernel: it does not see that the filters of all threads descend
        // from the same ones.
        for (const auto& [tid, other] : process.threads) {
            // Home decides about the caller, and about threads whose end it may have seen already.
            bool ends = other->ending || other->clear_tid == 0;
            if (other->filters.empty() || ends || other.get() == &thread) continue;
            process.notifier->reply_raw(n.id, call.refusal(tid));
            co_return;
        }
    }
    auto context = co_await worker_.threads.stop_in_call(thread, n.id);
    if (!context) co_return;
    thread.now_is(RemoteThread::Where::held);
    worker_.stopped.notify_all();
    pid_t pid = process.pid, tid = thread.tid;
    int64_t result = co_await worker_.forwarding.ask_home(process, thread, n, true);
    if (result == thread_gone && thread.stub->dead()) co_return;
    worker_.signals.hand_over_answered(thread);
    trace::return_from_call(context->regs, n.number, result);
    bool alone = !process.mixed && process.threads.size() == 1;
    thread.stub->capture(thread.host_tid, context->regs);
    if (result == 0 && call.filter) {
        FilterList one{call.filter};
        if (call.all_threads && !thread.filters.empty()) {
            co_await share_filters(thread, for_acceptor(*call.filter));
        } else if (call.all_threads || alone) {
            co_await install_for_all(process, std::move(one));
        } else {
            co_await install_for_one(thread, std::move(one));
        }
        if (worker_.find_thread(pid, tid) != &thread) co_return;
    }
    while (process.frozen) co_await worker_.stopped.wait();
    co_await worker_.threads.set_free(thread, *context);
}

// A thread at home has installed filters.
Task<void> Filters::set_filters(Frame frame) {
    auto guard = co_await worker_.metadata.lock();
    auto change = frame->session().getFilters();
    RemoteProcess* process = worker_.find_process(change.getPid());
    if (!process || !process->fragment || !process->fragment->has_helpers()) co_return;
    co_await install_for_all(*process, filters_from_wire(change.getFilters()));
}

// Home has allowed a filter for all threads. If threads other than the caller have filters of their
// own, they are ending: waits until they have ended. False if the process has ended.
Task<bool> Filters::await_ends(pid_t pid) {
    auto lingers = [](const auto& entry) {
        return entry.second->ending && !entry.second->filters.empty();
    };
    for (;;) {
        RemoteProcess* still = worker_.find_process(pid);
        if (!still || !still->fragment || !still->fragment->has_helpers()) co_return false;
        const auto& all = still->threads;
        if (std::none_of(all.begin(), all.end(), lingers)) co_return true;
        co_await worker_.stopped.wait();
    }
}

// The caller must be in its stub. Together with the new filter, the kernel installs the caller's
// own ones for all threads, helpers included.
Task<void> Filters::share_filters(RemoteThread& caller, ProgramFilter filter) {
    const pid_t pid = caller.process->pid, tid = caller.tid;
    bool may = co_await await_ends(pid);
    if (!may || worker_.find_thread(pid, tid) != &caller) co_return;
    int64_t result = co_await install_filter(*caller.stub, filter, true);
    if (result == thread_gone || worker_.find_thread(pid, tid) != &caller) co_return;
    if (result != 0) {
        worker_.link.close(not_installed(result));
        co_return;
    }
    for (const auto& [other_tid, other] : caller.process->threads) other->filters.clear();
}

Task<void> Filters::install_for_all(RemoteProcess& process, FilterList filters) {
    bool may = co_await await_ends(process.pid);
    if (!may) co_return;
    StubThread& executor = process.fragment->executor();
    for (size_t i = 0; i < filters.size(); i++) {
        bool last = i + 1 == filters.size();
        int64_t result = co_await install_filter(executor, for_acceptor(*filters[i]), last);
        if (result == 0 || result == thread_gone) continue;
        worker_.link.close(not_installed(result));
        co_return;
    }
}

Task<void> Filters::install_for_one(RemoteThread& thread, FilterList filters) {
    for (auto& filter : filters) {
        int64_t result = co_await install_filter(*thread.stub, for_acceptor(*filter), false);
        if (result == thread_gone) co_return;
        if (result != 0) {
            worker_.link.close(not_installed(result));
            co_return;
        }
        thread.filters.push_back(std::move(filter));
    }
}

// The thread is in the stop before SIGSYS. True if its filter kills it; home is told and does so.
bool Filters::dies_by_filter(RemoteThread& thread, const siginfo_t& info) {
    if (!filter_death(info)) return false;
    auto regs = trace::registers(thread.host_tid);
    if (!regs) return true;
    spdlog::debug("a filter of the program ends thread {}: call {}", thread.tid, info.si_syscall);
    thread.now_is(RemoteThread::Where::elsewhere);
    thread.stub->capture(thread.host_tid, *regs);
    worker_.pager.on_thread_gone(thread.tid);
    worker_.stopped.notify_all();
    worker_.signals.tell_of_signal(thread.process->pid, thread.tid, {info, 0},
                                   Signals::News::fatal);
    return true;
}

}  // namespace gpr::worker
