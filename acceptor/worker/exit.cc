// Threads and fragments end.

#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <csignal>

#include "acceptor/worker/process_end.h"
#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "monitor/node/exit_hold.h"
#include "monitor/node/robust_list.h"
#include "monitor/node/usage_wire.h"

namespace gpr {

namespace {
// A page may never come when the process is going down at home as well.
constexpr std::chrono::milliseconds page_patience{500};
constexpr std::chrono::seconds longest_end{3};  // home waits longer
constexpr uint64_t interval_timer_signals = 1ULL << (SIGVTALRM - 1) | 1ULL << (SIGPROF - 1);
}  // namespace

Task<void> Worker::bring_robust_lists(RemoteProcess& process) {
    auto done = std::make_shared<OneShot<bool>>(loop_);
    std::vector<pid_t> host_tids;
    for (const auto& [tid, thread] : process.threads) host_tids.push_back(thread->host_tid);
    spawn([](Worker& self, std::shared_ptr<Fragment> fragment, std::vector<pid_t> tids,
             std::shared_ptr<OneShot<bool>> end) -> Task<void> {
        for (pid_t host_tid : tids) {
            auto words = co_await robust_words(self.pager_, fragment, robust_list_of(host_tid));
            for (Range word : words) {
                co_await self.pager_.make_resident(*fragment, word, Access::write);
            }
        }
        end->set(true);
    }(*this, process.fragment, std::move(host_tids), done));
    auto timer = loop_.after(page_patience, [done] { done->set(false); });
    OneShot<bool>& all_here = *done;
    co_await all_here;
    loop_.cancel(timer);
}

Task<void> Worker::exit_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    auto words = co_await robust_words(pager_, process.fragment, robust_list_of(thread.host_tid));
    if (thread.clear_tid != 0) words.push_back({{thread.clear_tid}, {thread.clear_tid + 4}});
    co_await hold_to_end(thread, std::move(words));
    co_await ask_home(process, thread, n, false);
    thread.ending = true;
    process.notifier->let_it_run(n.id);
    if (process.mixed && thread.tid == process.pid && thread.clear_tid != 0) {
        wake_after_end_of_main(thread);
    }
}

// The kernel here wakes who waits here for its cleared tid.
void Worker::wake_after_end_of_main(const RemoteThread& thread) {
    const FutexWakeCall wake{thread.clear_tid, INT_MAX, 0xffffffff, true};
    after_end(loop_, thread.process->host_pid, thread.host_tid, [this, pid = thread.tid, wake] {
        if (RemoteProcess* process = find_process(pid)) send_futex_wake(*process, wake);
    });
}

Task<void> Worker::take_clear_tid(RemoteThread& leader, uint64_t at) {
    if (at == 0) co_return;
    leader.clear_tid = at;
    co_await leader.stub->call(SYS_set_tid_address, at);
}

Task<void> Worker::hold_to_end(RemoteThread& thread, std::vector<Range> words) {
    pid_t pid = thread.process->pid, tid = thread.tid;
    std::shared_ptr<Fragment> fragment = thread.process->fragment;
    uint64_t hold = co_await pager_.hold(*fragment, std::move(words), Access::write);
    RemoteThread* still = find_thread(pid, tid);
    if (!still) {
        pager_.release(hold);
        co_return;
    }
    still->exit_hold = hold;
    release_after_end(loop_, pager_, still->process->host_pid, still->host_tid, hold);
}

Task<void> Worker::end_process(Frame frame) {
    auto end = frame->session().getProcessEnd();
    pid_t pid = end.getPid();
    // Whatever its end waits for by then, such as a helper that does not answer because the program
    // has given it something else to do.
    if (RemoteProcess* ends = find_process(pid); ends && ends->fragment) {
        loop_.after(longest_end, [this, pid, it = std::weak_ptr(ends->fragment)] {
            RemoteProcess* late = find_process(pid);
            if (!late || late->fragment != it.lock()) return;
            spdlog::info("process {} does not end, and is killed", pid);
            late->ending = true;
            end_now(*late);
        });
    }
    { auto guard = co_await metadata_.lock(); }
    if (end.getNeverStarted()) {
        kept_.erase(pid);
        co_return;
    }
    RemoteProcess* process = find_process(pid);
    while (process && process->unfinished) {  // its helpers are being born
        co_await stopped_.wait();
        process = find_process(pid);
    }
    if (!process) {
        FrameBuilder answer;
        answer.session().initProcessGone().setPid(pid);
        link_.send(answer, gpr::Priority::urgent);
        co_return;
    }
    process->ending = true;
    if (end.getNewImage()) {
        co_await keep_of_image(*process);
        if (find_process(pid) != process) co_return;
        process->pending_timers =
            trace::signal_set(process->host_pid, "ShdPnd:") & interval_timer_signals;
    }
    process->used = usage_of_process(process->host_pid);
    add_memory_of(process->host_pid, process->used);
    // In a mixed session who waits for a lock of others does so at home: the kernel there does it.
    bool wakes = !end.getMemoryGone() && process->fragment && !process->mixed;
    if (wakes) co_await bring_robust_lists(*process);
    if (find_process(pid) != process) co_return;
    end_now(*process);
}

// The last of its threads is dead.
void Worker::bury(RemoteProcess& process) {
    FrameBuilder frame;
    auto gone = frame.session().initProcessGone();
    gone.setPid(process.pid);
    usage_to_wire(process.used, gone.initUsed());
    PagerStats pages = pager_.stats();
    gone.setFaults(pages.faults);
    gone.setPagesIn(pages.pages_in);
    gone.setPagesOut(pages.pages_out);
    gone.setWaitedNs(pages.waited_ns);
    gone.setCallsHome(calls_home_);
    gone.setCallsNative(calls_native_);
    gone.setCallsFdOwner(calls_fd_owner_);
    gone.setReason(process.end_reason);
    gone.setPendingTimers(process.pending_timers);
    auto used = gone.initUsedPaths(static_cast<unsigned>(used_paths_.size()));
    unsigned i = 0;
    for (uint32_t number : used_paths_) used.set(i++, number);
    auto used_calls = gone.initUsedCalls(static_cast<unsigned>(used_calls_.size()));
    i = 0;
    for (uint32_t number : used_calls_) used_calls.set(i++, number);
    gone.setCallsByRule(calls_by_rule_);
    if (process.fragment) {
        pager_.remove_fragment(*process.fragment);
        pager_.forget(process.fragment->space);
    }
    auto node = processes_.extract(process.pid);
    std::shared_ptr<RemoteProcess> dead = std::move(node.mapped());
    dead->frozen = false;  // nobody waits for that any more, nor for a fork at home
    dead->home_forks.reset();
    if (dead->changes) dead->changes->close();
    stopped_.notify_all();
    loop_.after(std::chrono::seconds(1), [dead] {});
    link_.send(frame, gpr::Priority::urgent);
}

}  // namespace gpr
