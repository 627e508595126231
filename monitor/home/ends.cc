#include "monitor/home/ends.h"

#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <functional>

#include "base/log.h"
#include "monitor/home/births.h"
#include "monitor/home/crossings.h"
#include "monitor/home/debugging.h"
#include "monitor/home/delegations.h"
#include "monitor/home/failures.h"
#include "monitor/home/filters.h"
#include "monitor/home/forks_at_home.h"
#include "monitor/home/home.h"
#include "monitor/home/kept_calls.h"
#include "monitor/home/last_words.h"
#include "monitor/home/remote_usage.h"
#include "monitor/home/shared_memory.h"
#include "monitor/home/signals.h"
#include "monitor/home/statistics.h"
#include "monitor/home/tracing.h"
#include "monitor/home/vfork_children.h"
#include "monitor/node/node_counts.h"
#include "monitor/node/usage_wire.h"
#include "monitor/tracee/call_stops.h"
#include "monitor/tracee/ptrace.h"
#include "syscall/table.h"

namespace gpr::home {

namespace {
// How long an acceptor may take to end a fragment.
constexpr std::chrono::seconds acceptor_patience{30};
constexpr std::chrono::milliseconds helper_patience{500};
constexpr std::chrono::seconds page_patience{10};  // how long pages may stop arriving

constexpr uint64_t least_of_pages = 4096;  // bytes; more than the link's keep-alive traffic

// Helpers share the process's memory, so they keep its executable and its shared memory in use.
// These must be free when the parent learns of the end. The helpers have been killed, so this is
// short; after `helper_patience` we continue anyway.
Task<void> helpers_gone(Loop& loop, Signal& ended, const HomeProcess& process) {
    auto late = std::make_shared<bool>(false);
    auto timer = loop.after(helper_patience, [late, &ended] {
        *late = true;
        ended.notify_all();
    });
    auto is_helper = [](const auto& t) { return t.second->helper; };
    while (!*late && std::ranges::any_of(process.threads, is_helper)) co_await ended.wait();
    loop.cancel(timer);
}

// Waits for `work`, which fetches pages, for as long as some arrive: a session must end even if its
// acceptor is lost or does not answer.
Task<void> while_it_comes(Loop& loop, const Acceptors& from, Task<void> work) {
    struct Wait {
        explicit Wait(Loop& of) : over(of) {}
        OneShot<bool> over;
        uint64_t bytes_before = 0;
        std::function<void()> look;
        Loop::TimerId timer{};
    };
    auto wait = std::make_shared<Wait>(loop);
    spawn([](Task<void> awaited, std::shared_ptr<Wait> its) -> Task<void> {
        co_await awaited;
        its->over.set(true);
    }(std::move(work), wait));
    wait->bytes_before = from.link_stats().bytes_in;
    wait->look = [&loop, &from, its = wait.get()] {
        uint64_t bytes = from.link_stats().bytes_in;
        if (bytes - its->bytes_before < least_of_pages) {
            its->over.set(false);
        } else {
            its->bytes_before = bytes;
            its->timer = loop.after(page_patience, its->look);
        }
    };
    wait->timer = loop.after(page_patience, wait->look);
    OneShot<bool>& over = wait->over;
    bool all_came = co_await over;
    loop.cancel(wait->timer);
    if (!all_came) spdlog::warn("the acceptor has not brought what the program wrote in the end");
}

// There may be a child that has not been told: whatever ended the thread came before that.
bool was_making_a_child(const HomeThread& thread) {
    auto regs = trace::registers(thread.tid);
    if (!regs) return false;
    const uint64_t call = regs->orig_rax;
    return call == SYS_fork || call == SYS_vfork || call == SYS_clone || call == SYS_clone3;
}

// exit_group is not reported at rest, so its caller's registers tell that all threads end. Those
// that were ending by themselves may do so without an event.
bool calls_exit_group(const HomeThread& thread) {
    auto regs = trace::registers(thread.tid);
    return !thread.helper && regs && regs->orig_rax == SYS_exit_group;
}

}  // namespace

void Ends::on_end(HomeThread& thread) {
    pid_t tid = thread.tid;
    HomeProcess& process = *thread.process;
    if (thread.stub) thread.stub->on_death();
    home_.crossings.on_thread_end(process.pid, tid);
    if (thread.helper || tid == process.pid) home_.orphaned_helpers.note_end(tid, thread.helper);
    if (home_.policy.mixed() && !thread.helper) home_.last_words.tell_exit(thread);
    if (process.shares_memory_with) home_.vfork_children.on_end(thread);
    if (process.fragment) {
        if (process.fragment->has_helpers()) {
            if (tid == process.fragment->page_mover_tid())
                process.fragment->page_mover().on_death();
            if (tid == process.fragment->executor_tid()) process.fragment->executor().on_death();
            if (tid == process.fragment->waker_tid()) process.fragment->waker()->on_death();
            home_.failures.on_helper_end(process, tid);
        }
    }
    home_.forks_at_home.end_fork(thread);
    home_.pager.on_thread_end(tid);
    home_.notifier->on_thread_gone(tid);
    if (home_.call_stops) CallStops::end(tid);
    home_.signals.on_thread_end(tid);
    home_.waits.remove_handler(tid);
    process.threads.erase(tid);
    bury(std::move(home_.threads[tid]), process);
    home_.threads.erase(tid);
    home_.remote_changed.notify_all();
    bool alone = true;
    for (auto& [other, t] : process.threads) alone = alone && t->helper;
    if (!alone) return;
    process.state = HomeProcess::State::ending;
    end_helpers(process);
    if (!process.threads.empty()) return;
    if (process.fragment) {
        home_.pager.remove_fragment(*process.fragment);
        home_.shared_memory.forget_memory(process);
    }
    pid_t pid = process.pid;
    const bool known = home_.kept_calls.forget(pid);
    if (process.started_remotely) {
        spawn(end_remotely(process, true));
    } else if (known) {
        forget_remotely(pid);
    }
    for (const auto& window : process.changes) window->close();
    std::shared_ptr<HomeProcess> gone = std::move(home_.processes[pid]);
    home_.processes.erase(pid);
    home_.crossings.forget_places(pid);
    home_.delegations.forget(pid);
    home_.loop.after(std::chrono::seconds(1), [gone] {});
    if (home_.processes.empty()) {
        home_.acceptors.close("the program has ended");
        home_.loop.after(std::chrono::seconds(1), [this] { home_.loop.stop(); });
    }
}

// Keeps the record of a dead thread for a while, until coroutines that wait for its stub have seen
// that it is dead. Then frees it and its slot.
void Ends::bury(std::unique_ptr<HomeThread> thread, HomeProcess& process) {
    std::shared_ptr<HomeThread> dead = std::move(thread);
    home_.pager.supply.release(dead->exit_hold);
    home_.loop.after(std::chrono::seconds(1), [dead, fragment = process.fragment] {
        if (dead->stub && fragment) fragment->retire(*dead->stub);
    });
}

// After exec one thread is left, with the process's id, whichever called; the others may end
// without an event.
void Ends::forget_other_threads(HomeProcess& process) {
    for (auto it = process.threads.begin(); it != process.threads.end();) {
        HomeThread* other = it->second;
        if (other->tid == process.pid || other->helper) {
            ++it;
            continue;
        }
        if (other->stub) other->stub->on_death();
        home_.pager.on_thread_end(other->tid);
        home_.waits.remove_handler(other->tid);
        pid_t tid = other->tid;
        bury(std::move(home_.threads[tid]), process);
        home_.threads.erase(tid);
        it = process.threads.erase(it);
    }
}

bool Ends::is_helper(pid_t pid) const {
    auto it = home_.threads.find(pid);
    return home_.orphaned_helpers.contains(pid) ||
           (it != home_.threads.end() && it->second->helper);
}

bool Ends::is_helper_named(uint32_t number, const SyscallArguments& args) const {
    auto names = [&](int argument) {
        return argument >= 0 && is_helper(static_cast<pid_t>(args[static_cast<size_t>(argument)]));
    };
    const SentPlaces sent = details_of(number).sends;
    return names(sent.process) || names(sent.thread) || (number == SYS_pidfd_open && names(0));
}

void Ends::end_helpers(HomeProcess& process) {
    for (auto& [tid, thread] : process.threads) {
        if (thread->helper) kill(tid, SIGKILL);
    }
}

// For a process that ends and may never have had a fragment at the acceptors, which still keep
// descriptors for it.
void Ends::forget_remotely(pid_t pid) {
    if (!home_.acceptors.reachable()) return;
    FrameBuilder frame;
    auto end = frame.session().initProcessEnd();
    end.setPid(pid);
    end.setNeverStarted(true);
    home_.acceptors.each([&](RemoteNode& node) {
        if (node.fd_base != 0) node.link.send(frame, Priority::urgent);
    });
}

// A process, or an image of it, has ended at this acceptor.
void Ends::on_process_gone(RemoteNode& node, wire::ProcessGone::Reader gone) {
    home_.remote_usage.note_remote_usage(node, gone.getPid(), usage_from_wire(gone.getUsed()));
    if (HomeProcess* process = home_.find_process(gone.getPid())) {
        process->pending_timers |= gone.getPendingTimers();
    }
    node.counts.note(counts_from_wire(gone.getCounts()));
    for (uint32_t number : gone.getUsedPaths()) home_.rule_use.note_path(number);
    for (uint32_t number : gone.getUsedCalls()) home_.rule_use.note_call(node.id, number);
    auto it = node.ending.find(gone.getPid());
    if (it != node.ending.end()) {
        it->second->set(true);
    } else {
        home_.failures.on_remote_end(node, gone.getPid(), gone.getReason());
    }
}

Task<void> Ends::end_remotely(HomeProcess& process, bool memory_gone, bool new_image) {
    // A process can be killed while it comes home. Who asks second must not replace what the first
    // waits for.
    if (!std::exchange(process.started_remotely, false)) co_return;
    if (!home_.acceptors.reachable()) co_return;
    pid_t pid = process.pid;
    FrameBuilder frame;
    auto end = frame.session().initProcessEnd();
    end.setPid(pid);
    end.setMemoryGone(memory_gone);
    end.setNewImage(new_image);
    home_.acceptors.each([&](RemoteNode& node) {
        node.ending[pid] = std::make_unique<OneShot<bool>>(home_.loop);
        node.link.send(frame, Priority::urgent);
    });
    for (NodeId id = 1; home_.acceptors.contains(id); id++) {
        RemoteNode& node = home_.acceptors.at(id);
        OneShot<bool>& gone = *node.ending.at(pid);
        auto timer = home_.loop.after(acceptor_patience, [&gone] { gone.set(false); });
        bool in_time = co_await gone;
        home_.loop.cancel(timer);
        node.ending.erase(pid);
        if (!in_time) node.link.close("it did not end a process in time");
    }
}

// The thread is in PTRACE_EVENT_EXIT, its memory and descriptors still there. For the last thread,
// this is the last moment before anybody can see that the process has ended.
Task<void> Ends::finish(HomeProcess& process, HomeThread& thread) {
    pid_t tid = thread.tid;
    bool is_helper = thread.helper;  // then its whole process was killed
    const bool made_last_call = thread.life() == HomeThread::Life::made_last_call;
    thread.advance(HomeThread::Life::ending);
    auto status = trace::event_message(tid);
    int raw = status ? static_cast<int>(*status) : 0;
    if (WIFSIGNALED(raw) || was_making_a_child(thread)) home_.births.find_untold(thread);
    bool filtered = WIFSIGNALED(raw) && Filters::is_ended_by_filter(thread, WTERMSIG(raw));
    process.group_exit = process.group_exit || calls_exit_group(thread);
    bool all_end = process.group_exit || (WIFSIGNALED(raw) && !filtered);
    bool others = false;
    for (auto& [other, t] : process.threads) others = others || !(t->ends() || t->helper);
    auto first = process.threads.find(process.pid);
    bool first_ends = first == process.threads.end() || first->second->ends();
    bool last = !process.executing && !process.finished && (all_end ? first_ends : !others);
    // Or it is we who end it, of a process that goes on.
    if (is_helper && process.state == HomeProcess::State::ending) last = false;
    if (last) {
        process.finished = true;
        Usage used = usage_of_process(process.pid);
        home_.stats.home_cpu.total_ns += used.total_ns;
        home_.stats.home_cpu.user_ns += used.user_ns;
        if (process.fragment) {
            // If the thread has made its last call at an acceptor, the kernel there does this.
            if (home_.policy.mixed() && (all_end || !made_last_call) && !process.doomed) {
                co_await home_.last_words.before_exit(thread, false);
            }
            while (process.ends_begun > 0) co_await home_.remote_changed.wait();
            process.state = HomeProcess::State::ending;
            // After this no thread there can write; then what they wrote is fetched.
            if (process.started_remotely) co_await end_remotely(process, process.doomed);
            Task<void> saving = home_.shared_memory.save_shared(process);
            co_await while_it_comes(home_.loop, home_.acceptors, std::move(saving));
            // If there may be a subreaper, helpers end later: equal signals are merged, so it would
            // get the SIGCHLD of whichever ends first.
            if (!home_.orphaned_helpers.expected()) {
                end_helpers(process);
                if (!is_helper) co_await helpers_gone(home_.loop, home_.remote_changed, process);
            }
        }
        home_.remote_usage.credit_parent(process);
        spdlog::info("process {} ends, {}", process.pid,
                     WIFSIGNALED(raw) ? fmt::format("killed by signal {}", WTERMSIG(raw))
                                      : fmt::format("exit status {}", WEXITSTATUS(raw)));
        if (process.is_root) {
            spdlog::info("{} crossings, {} programs; {} bytes sent, {} received",
                         home_.stats.crossings, home_.stats.images,
                         home_.acceptors.link_stats().bytes_out,
                         home_.acceptors.link_stats().bytes_in);
            home_.statistics.write_stats(WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw));
            home_.statistics.tell_idle_rules();
        }
    }
    if (!last && home_.policy.mixed()) co_await home_.last_words.before_exit(thread, filtered);
    if (!home_.debugging.tracing().holds_end(thread, raw)) trace::resume(tid);
}

}  // namespace gpr::home
