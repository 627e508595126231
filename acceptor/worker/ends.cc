#include "acceptor/worker/ends.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <csignal>

#include "acceptor/worker/call_rules.h"
#include "acceptor/worker/crossings.h"
#include "acceptor/worker/files.h"
#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/futexes.h"
#include "acceptor/worker/inheritance.h"
#include "acceptor/worker/observations.h"
#include "acceptor/worker/process_end.h"
#include "acceptor/worker/wait_here.h"
#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "monitor/node/exit_hold.h"
#include "monitor/node/futex_wake.h"
#include "monitor/node/robust_list.h"
#include "monitor/node/usage_wire.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::worker {

namespace {
// A page may never arrive if the process is ending at home, too.
constexpr std::chrono::milliseconds page_patience{500};
constexpr std::chrono::seconds longest_end{3};  // less than home waits
constexpr uint64_t interval_timer_signals = 1ULL << (SIGVTALRM - 1) | 1ULL << (SIGPROF - 1);

// The wakes that this kernel makes at a thread's end, for waiters on other nodes: for its cleared
// tid, and for locks that it held.
std::vector<FutexWakeCall> last_wakes(const RemoteThread& thread) {
    std::vector<FutexWakeCall> wakes;
    if (thread.clear_tid != 0) wakes.push_back({thread.clear_tid, INT_MAX, 0xffffffff, true});
    for (uint64_t lock : thread.robust_locks) wakes.push_back(handing_on(lock));
    return wakes;
}
}  // namespace

Task<void> Ends::exit_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    const pid_t pid = process.pid, tid = thread.tid;
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto words = co_await robust_words(worker_.pager, fragment, robust_list_of(thread.host_tid));
    if (worker_.find_thread(pid, tid) != &thread) co_return;
    // If the lock's word is in shared memory that is used at home, its waiters sleep in home's
    // kernel, which must wake them.
    auto waits_at_home = [&](uint64_t lock) {
        return process.mixed && is_shared_word(*fragment, {lock});
    };
    if (std::ranges::any_of(words.locks, waits_at_home)) {
        co_await worker_.crossings.leave_at_call(thread, n);
        co_return;
    }
    if (thread.clear_tid != 0) words.all.push_back({{thread.clear_tid}, {thread.clear_tid + 4}});
    thread.robust_locks = std::move(words.locks);
    co_await hold_to_end(thread, std::move(words.all));
    co_await worker_.forwarding.ask_home(process, thread, n, false);
    thread.ending = true;
    process.notifier->let_it_run(n.id);
    if (process.mixed && thread.tid == process.pid) wake_after_end_of_main(thread);
}

Task<void> Ends::hold_to_end(RemoteThread& thread, std::vector<Range> words) {
    pid_t pid = thread.process->pid, tid = thread.tid;
    std::shared_ptr<Fragment> fragment = thread.process->fragment;
    uint64_t hold = co_await worker_.pager.supply.hold(*fragment, std::move(words), Access::write);
    RemoteThread* still = worker_.find_thread(pid, tid);
    if (!still) {
        worker_.pager.supply.release(hold);
        co_return;
    }
    still->exit_hold = hold;
    release_after_end(worker_.loop, worker_.pager, still->process->host_pid, still->host_tid, hold);
}

Task<void> Ends::take_clear_tid(RemoteThread& main, uint64_t at) {
    if (at == 0) co_return;
    main.clear_tid = at;
    co_await main.stub->call(SYS_set_tid_address, at);
}

void Ends::wake_after_end_of_main(const RemoteThread& thread) {
    auto wake_all = [this, pid = thread.tid, wakes = last_wakes(thread)] {
        RemoteProcess* process = worker_.find_process(pid);
        if (!process) return;
        for (const FutexWakeCall& wake : wakes) worker_.futexes.send_futex_wake(*process, wake);
    };
    after_end(worker_.loop, thread.process->host_pid, thread.host_tid, wake_all);
}

// The thread has ended at home. Its shadow exits as a thread does, which clears its tid here.
Task<void> Ends::end_shadow(Frame frame) {
    { auto guard = co_await worker_.metadata.lock(); }
    auto end = frame->session().getShadowEnd();
    RemoteThread* thread = worker_.find_thread(end.getPid(), end.getTid());
    if (!thread || thread->here() || thread->process->life == RemoteProcess::Life::ending)
        co_return;
    if (end.getTid() == end.getPid()) {
        co_await clear_tid_of_main(*thread);
        co_return;
    }
    std::shared_ptr<Fragment> fragment = thread->process->fragment;
    StubThread* stub = thread->stub.get();
    if (thread->clear_tid != 0) {
        std::vector<Range> word{{{thread->clear_tid}, {thread->clear_tid + 4}}};
        co_await hold_to_end(*thread, std::move(word));
    }
    if (worker_.find_thread(end.getPid(), end.getTid()) != thread) co_return;
    thread->ending = true;
    co_await stub->call(SYS_exit, 0);
}

// The main thread's shadow stays as long as the process, so this clears its tid.
Task<void> Ends::clear_tid_of_main(RemoteThread& thread) {
    uint64_t word = std::exchange(thread.clear_tid, 0);
    if (word == 0) co_return;
    RemoteProcess& process = *thread.process;
    std::shared_ptr<Fragment> fragment = process.fragment;
    const int nobody = 0;
    co_await worker_.pager.memory.write(*fragment, {word}, std::as_bytes(std::span(&nobody, 1)));
    FutexWakeCall wake{word, INT_MAX, 0xffffffff, true};
    co_await wake_futex(*fragment, wake);
    if (worker_.find_process(fragment->pid())) worker_.futexes.send_futex_wake(process, wake);
}

Task<void> Ends::end_process(Frame frame) {
    auto end = frame->session().getProcessEnd();
    pid_t pid = end.getPid();
    // Kills the process if its end takes too long, for example because the program has written an
    // order of its own into a helper's slot, so that the helper does not answer. Then its id may
    // soon belong to a new image, or to the same process that is back.
    auto was_killed = std::make_shared<bool>(false);
    if (RemoteProcess* ends = worker_.find_process(pid); ends && ends->fragment) {
        auto kill_late = [this, pid, was_killed, its = std::weak_ptr(ends->fragment)] {
            RemoteProcess* late = worker_.find_process(pid);
            auto fragment = its.lock();
            if (!late || !fragment || late->fragment != fragment) return;
            spdlog::info("process {} does not end, and is killed", pid);
            *was_killed = true;
            late->life = RemoteProcess::Life::ending;
            end_now(*late);
        };
        worker_.loop.after(longest_end, std::move(kill_late));
    }
    { auto guard = co_await worker_.metadata.lock(); }
    if (end.getNeverStarted()) {
        worker_.inheritance.forget(pid);
        co_return;
    }
    RemoteProcess* process = worker_.find_process(pid);
    while (process && process->life == RemoteProcess::Life::copied) {  // its helpers are being born
        co_await worker_.stopped.wait();
        process = worker_.find_process(pid);
    }
    if (*was_killed) co_return;
    if (!process) {
        FrameBuilder answer;
        answer.session().initProcessGone().setPid(pid);
        worker_.link.send(answer, gpr::Priority::urgent);
        co_return;
    }
    process->life = RemoteProcess::Life::ending;
    if (end.getNewImage()) {
        co_await worker_.inheritance.keep_of_image(*process);
        if (worker_.find_process(pid) != process) co_return;
        process->pending_timers =
            trace::signal_set(process->host_pid, "ShdPnd:") & interval_timer_signals;
    }
    process->used = usage_of_process(process->host_pid);
    add_memory_of(process->host_pid, process->used);
    // Only needed if this kernel wakes the waiters: not in a mixed session, where they wait at
    // home, nor if home has dropped the memory, except after exec.
    bool has_list = !end.getMemoryGone() || end.getNewImage();
    bool wakes = has_list && process->fragment && !process->mixed;
    if (wakes) co_await hold_robust_lists(*process);
    if (worker_.find_process(pid) != process) co_return;
    if (process->fragment) co_await let_go_of_devices(*process);
    if (worker_.find_process(pid) != process) co_return;
    end_now(*process);
}

// Drivers expect that the process which has opened a device is the last to close it. We may have
// its descriptors as well, and the page mover, which is a process with the program's memory, has
// its mappings.
Task<void> Ends::let_go_of_devices(RemoteProcess& process) {
    for (WaitHere* wait : *process.waits_here) wait->let_go();
    bool maps_devices = false;
    std::shared_ptr<Fragment> fragment = process.fragment;
    for (const auto& [begin, m] : fragment->space.all()) maps_devices = maps_devices || m.anchored;
    if (!maps_devices || !fragment->has_helpers() || process.page_mover_host_tid <= 0) co_return;
    kill(process.page_mover_host_tid, SIGKILL);
    while (!fragment->page_mover().dead()) co_await worker_.stopped.wait();
}

// The kernel walks the lists when the threads are killed. Until then home must not take the pages
// back, not even to read: the kernel would skip a word that is write-protected.
Task<void> Ends::hold_robust_lists(RemoteProcess& process) {
    struct Last {
        explicit Last(Scheduler& scheduler) : done(scheduler) {}
        OneShot<bool> done;
        uint64_t hold = 0;
        bool too_late = false;
    };
    auto last = std::make_shared<Last>(worker_.loop);
    std::vector<pid_t> host_tids;
    for (const auto& [tid, thread] : process.threads) host_tids.push_back(thread->host_tid);
    spawn([](Pager& pager, std::shared_ptr<Fragment> fragment, std::vector<pid_t> tids,
             std::shared_ptr<Last> shared) -> Task<void> {
        std::vector<Range> all;
        for (pid_t host_tid : tids) {
            auto words = co_await robust_words(pager, fragment, robust_list_of(host_tid));
            if (words.locks.empty()) continue;
            for (Range word : words.all) {
                bool mapped = fragment->space.first_gap(word.pages()) >= word.pages().end;
                if (mapped) all.push_back(word);
            }
        }
        if (!all.empty())
            shared->hold = co_await pager.supply.hold(*fragment, std::move(all), Access::write);
        if (shared->too_late) pager.supply.release(shared->hold);
        shared->done.set(true);
    }(worker_.pager, process.fragment, std::move(host_tids), last));
    auto timer = worker_.loop.after(page_patience, [last] { last->done.set(false); });
    const pid_t pid = process.pid;
    OneShot<bool>& done = last->done;
    last->too_late = !co_await done;
    worker_.loop.cancel(timer);
    if (last->too_late) {
        worker_.pager.supply.release(std::exchange(last->hold, 0));
        co_return;
    }
    if (worker_.find_process(pid) == &process)
        process.end_hold = last->hold;
    else
        worker_.pager.supply.release(last->hold);
}

void Ends::on_end(pid_t host_tid, WaitStatus status) {
    worker_.waits.remove_handler(host_tid);
    auto owner = worker_.owners.find(host_tid);
    if (owner == worker_.owners.end()) return;
    RemoteProcess& process = *owner->second;
    note_end(process, host_tid, status);
    worker_.owners.erase(owner);
    std::erase_if(process.host_tids, [&](const auto& task) { return task.second == host_tid; });
    if (process.notifier) process.notifier->on_thread_gone(host_tid);
    auto it = worker_.by_host_tid.find(host_tid);
    if (it != worker_.by_host_tid.end()) {
        RemoteThread& thread = *it->second;
        worker_.by_host_tid.erase(it);
        thread.stub->on_death();
        if (process.mixed && process.life != RemoteProcess::Life::ending) {
            for (const auto& wake : last_wakes(thread)) {
                worker_.futexes.send_futex_wake(process, wake);
            }
        }
        worker_.pager.supply.release(thread.exit_hold);
        worker_.pager.on_thread_end(thread.tid);
        if (thread.answer) thread.answer->set(thread_gone);
        worker_.stopped.notify_all();
        auto node = process.threads.extract(thread.tid);
        std::shared_ptr<RemoteThread> dying = std::move(node.mapped());
        worker_.loop.after(std::chrono::seconds(1), [dying, fragment = process.fragment] {
            if (fragment) fragment->retire(*dying->stub);
        });
    } else if (process.fragment && process.fragment->has_helpers()) {
        if (host_tid == process.page_mover_host_tid) {
            process.fragment->page_mover().on_death();
            worker_.stopped.notify_all();
        }
        if (host_tid == process.executor_host_tid) process.fragment->executor().on_death();
        if (host_tid == process.waker_host_tid) process.fragment->waker()->on_death();
    }
    if (--process.alive == 0) bury(process);
}

// A process here ends when home says so. If it ends otherwise, it or its page mover was killed.
void Ends::note_end(RemoteProcess& process, pid_t host_tid, WaitStatus status) {
    if (process.life == RemoteProcess::Life::ending || !process.end_reason.empty()) return;
    bool helper = host_tid == process.page_mover_host_tid;
    if (host_tid != process.host_pid && !helper) return;
    if (!helper && status.kind != WaitStatus::Kind::killed) return;
    process.end_reason = worker_.sandbox.limit_exceeded();
    if (process.end_reason.empty()) {
        process.end_reason = helper
                                 ? "lost a helper of gpr"
                                 : fmt::format("was killed by signal {}{}", status.value,
                                               status.value == SIGKILL ? " (out of memory?)" : "");
    }
    spdlog::warn("process {}: {}", process.pid, process.end_reason);
    end_now(process);
}

// The last thread of the process has ended.
void Ends::bury(RemoteProcess& process) {
    FrameBuilder frame;
    auto gone = frame.session().initProcessGone();
    gone.setPid(process.pid);
    usage_to_wire(process.used, gone.initUsed());
    counts_to_wire(worker_.counts_so_far(), gone.initCounts());
    gone.setReason(process.end_reason);
    gone.setPendingTimers(process.pending_timers);
    auto used = gone.initUsedPaths(static_cast<unsigned>(worker_.files.used().size()));
    unsigned i = 0;
    for (uint32_t number : worker_.files.used()) used.set(i++, number);
    auto used_calls = gone.initUsedCalls(static_cast<unsigned>(worker_.call_rules.used().size()));
    i = 0;
    for (uint32_t number : worker_.call_rules.used()) used_calls.set(i++, number);
    worker_.pager.supply.release(process.end_hold);
    if (process.fragment) {
        worker_.pager.remove_fragment(*process.fragment);
        worker_.pager.objects.forget(process.fragment->space);
    }
    auto node = worker_.processes.extract(process.pid);
    std::shared_ptr<RemoteProcess> dead = std::move(node.mapped());
    worker_.observations.note_ended(dead->used);
    dead->frozen = false;  // nobody waits for a fork of it any more
    dead->home_forks.reset();
    if (dead->changes) dead->changes->close();
    worker_.stopped.notify_all();
    worker_.loop.after(std::chrono::seconds(1), [dead] {});
    worker_.link.send(frame, gpr::Priority::urgent);
}

}  // namespace gpr::worker
