// Threads and processes begin and end.

#include <linux/sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>

#include "base/log.h"
#include "monitor/home/session.h"
#include "monitor/home/stats_report.h"
#include "monitor/node/clone_call.h"
#include "monitor/node/usage.h"

namespace gpr {

namespace {
constexpr std::chrono::seconds acceptor_patience{5};  // to end a fragment
constexpr std::chrono::milliseconds helper_patience{500};
constexpr std::chrono::seconds page_patience{10};  // in which something has to come
constexpr uint64_t least_of_pages = 4096;          // bytes; more than a link needs to be alive
constexpr uint64_t any_stack_size = 512;           // until its own is set

std::vector<pid_t> wanted_ids(wire::CallRequest::Reader call) {
    constexpr size_t too_many = 33;  // for any kernel (MAX_PID_NS_LEVEL), which then says so
    std::vector<pid_t> ids;
    for (pid_t id : call.getSetTid()) {
        if (ids.size() < too_many) ids.push_back(id);
    }
    return ids;
}

// Helpers have the process's memory. What only that keeps in use, the file that it executes and its
// shared memory, is to be free when the parent learns of the end. They have been killed, so this is
// short, and a kernel that does not let them end holds up nobody for longer than `helper_patience`.
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

// Waits for what the acceptor brings as long as something comes: a session whose acceptor is lost,
// or does not answer, ends all the same.
Task<void> while_it_comes(Loop& loop, const Link& link, Task<void> work) {
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
    wait->bytes_before = link.stats().bytes_in;
    wait->look = [&loop, &link, its = wait.get()] {
        uint64_t bytes = link.stats().bytes_in;
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
}  // namespace

// The acceptor starts the thread that runs; here its shadow is born, straight into the stub.
Task<void> HomeSession::spawn_thread(HomeProcess& process, HomeThread& thread, Frame frame) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto slot = fragment->mailbox().allocate();
    if (!slot) {
        reply(thread, -EAGAIN);
        co_return;
    }
    auto stub = std::make_unique<StubThread>(loop_, fragment->mailbox(), *slot);
    fragment->mailbox().prepare_birth(*slot);
    fragment->add_stub_thread(*stub);
    auto call = frame->session().getCall();
    clone_args clone{};
    // The kernel judges what the program asks for. Its ids are written there, its shadow here must
    // not be waited for, and the stack is the stub's.
    clone.flags =
        call.getArgs()[0] & ~uint64_t{CLONE_PARENT_SETTID | CLONE_CHILD_SETTID |
                                      CLONE_CHILD_CLEARTID | CLONE_UNTRACED | CLONE_VFORK};
    clone.exit_signal = call.getArgs()[5];
    clone.pidfd = call.getArgs()[2];
    clone.tls = call.getArgs()[4];
    clone.cgroup = call.getCgroup();
    clone.stack = Mailbox::stack_top(*slot).value - 8 - any_stack_size;
    clone.stack_size = any_stack_size;
    int64_t tid = co_await clone_in_stub(*thread.stub, clone, wanted_ids(call));
    HomeThread* born = tid > 0 ? find_thread(process.pid, static_cast<pid_t>(tid)) : nullptr;
    if (!born) {
        fragment->remove_stub_thread(*stub);
        fragment->mailbox().release(*slot);
        if (tid != thread_gone) reply(thread, tid > 0 ? -EAGAIN : tid);
        co_return;
    }
    born->stub = std::move(stub);
    born->remote = born->affinity_told = true;
    // It has that of its parent's shadow.
    if (thread.passed) co_await take_mask(*born, thread.passed->mask);
    reply(thread, tid);
}

// fork, vfork, posix_spawn: the child begins here, where its memory and its parent are.
Task<void> HomeSession::spawn_process(HomeProcess& process, HomeThread& thread, Frame frame) {
    auto call = frame->session().getCall();
    auto args = call.getArgs();  // as clone's: flags, stack, parent_tid, child_tid, tls
    uint64_t flags = args[0];
    if (call.getRegisters().size() != sizeof(user_regs_struct)) {
        link_.close("the acceptor asked for a process without its registers");
        co_return;
    }
    Birth birth;
    birth.shares_memory = (flags & CLONE_VM) != 0;
    birth.exit_signal = args[5];
    if (flags & CLONE_CHILD_CLEARTID) birth.clear_tid = args[3];
    ThreadContext& child = birth.context;
    std::memcpy(&child.regs, call.getRegisters().begin(), sizeof child.regs);
    auto xstate = reinterpret_cast<const std::byte*>(call.getExtendedState().begin());
    child.xstate.assign(xstate, xstate + call.getExtendedState().size());
    child.signal_mask = call.getSignalMask();
    child.regs.rax = 0;
    child.regs.orig_rax = ~0UL;
    if (args[1] != 0) child.regs.rsp = args[1];
    if (flags & CLONE_SETTLS) child.regs.fs_base = args[4];
    if (copies_in_place(thread, call)) {
        co_await fork_in_place(process, thread, frame, std::move(birth));
        co_return;
    }
    std::shared_ptr<Fragment> fragment = process.fragment;
    if (!birth.shares_memory) co_await pager_.begin_fork(fragment);
    std::shared_ptr<HeldUp> held;
    if (birth.shares_memory) held = co_await hold_up(process, flags & CLONE_VFORK);
    births_[thread.tid] = std::move(birth);
    // Its stack and registers are set before it runs; until then any stack will do.
    StubThread& stub = *thread.stub;
    clone_args clone{};
    clone.flags = flags & ~uint64_t{CLONE_UNTRACED};
    clone.tls = args[4];
    clone.exit_signal = args[5];
    clone.cgroup = call.getCgroup();
    (flags & CLONE_PIDFD ? clone.pidfd : clone.parent_tid) = args[2];
    clone.child_tid = args[3];
    if (flags & CLONE_VM) {
        clone.stack = Mailbox::slot_address(stub.slot()).value;
        clone.stack_size = GPR_SLOT_STACK_TOP - 512;
    }
    int64_t result = co_await clone_in_stub(stub, clone, wanted_ids(call));
    if (births_.erase(thread.tid) > 0 && !(flags & CLONE_VM)) co_await pager_.end_fork(fragment);
    if (held) pager_.release_shared(std::exchange(held->objects, {}));
    for (auto& [object, file] : shared_files_) note_size(file);  // the child may have changed it
    if (result != thread_gone) reply(thread, result);
}

bool HomeSession::is_helper(pid_t pid) const {
    auto it = threads_.find(pid);
    return orphaned_helpers_.contains(pid) || (it != threads_.end() && it->second->helper);
}

void HomeSession::end_helpers(HomeProcess& process) {
    for (auto& [tid, thread] : process.threads) {
        if (thread->helper) kill(tid, SIGKILL);
    }
}

// A process that has ended may never have been at the acceptor, which has its descriptors there.
void HomeSession::forget_remotely(pid_t pid) {
    if (fd_base_ == 0 || !link_open_) return;
    FrameBuilder frame;
    auto end = frame.session().initProcessEnd();
    end.setPid(pid);
    end.setNeverStarted(true);
    link_.send(frame, Priority::urgent);
}

Task<void> HomeSession::end_remotely(HomeProcess& process, bool memory_gone, bool new_image) {
    process.started_remotely = false;
    if (!link_open_) co_return;
    pid_t pid = process.pid;
    ending_[pid] = std::make_unique<OneShot<bool>>(loop_);
    OneShot<bool>& gone = *ending_[pid];
    FrameBuilder frame;
    auto end = frame.session().initProcessEnd();
    end.setPid(pid);
    end.setMemoryGone(memory_gone);
    end.setNewImage(new_image);
    link_.send(frame, Priority::urgent);
    auto timer = loop_.after(acceptor_patience, [&gone] { gone.set(false); });
    bool in_time = co_await gone;
    loop_.cancel(timer);
    ending_.erase(pid);
    if (!in_time) link_.close("it did not end a process in time");
}

// The thread is at its very end, its memory and descriptors still there: the last moment before
// anybody can see that the process has ended.
Task<void> HomeSession::finish(HomeProcess& process, HomeThread& thread) {
    pid_t tid = thread.tid;
    bool is_helper = thread.helper;  // of a process that was killed with all of its threads
    thread.ending = true;
    auto status = trace::event_message(tid);
    int raw = status ? static_cast<int>(*status) : 0;
    bool filtered = WIFSIGNALED(raw) && is_ended_by_filter(thread, WTERMSIG(raw));
    bool all_end = process.group_exit || (WIFSIGNALED(raw) && !filtered);
    bool others = false;
    for (auto& [other, t] : process.threads) others = others || !(t->ending || t->helper);
    auto first = process.threads.find(process.pid);
    bool first_ends = first == process.threads.end() || first->second->ending;
    bool last = !process.executing && !process.finished && (all_end ? first_ends : !others);
    if (last) {
        process.finished = true;
        Usage used = usage_of_process(process.pid);
        stats_.home_cpu.total_ns += used.total_ns;
        stats_.home_cpu.user_ns += used.user_ns;
        if (process.fragment) {
            if (policy_.mixed() && all_end && !process.doomed) co_await before_exit(thread, false);
            while (process.ends_begun > 0) co_await remote_changed_.wait();
            process.state = HomeProcess::State::ending;
            // Its threads there do not write any more; then what they wrote is brought home.
            if (process.started_remotely) co_await end_remotely(process, process.doomed);
            credit_parent(process);
            Task<void> saving = save_shared(process);
            co_await while_it_comes(loop_, link_, std::move(saving));
            // The SIGCHLD of the first that ends is the one that a reaper gets.
            if (!orphaned_helpers_.expected()) {
                end_helpers(process);
                if (!is_helper) co_await helpers_gone(loop_, remote_changed_, process);
            }
        }
        spdlog::info("process {} ends, {}", process.pid,
                     WIFSIGNALED(raw) ? fmt::format("killed by signal {}", WTERMSIG(raw))
                                      : fmt::format("exit status {}", WEXITSTATUS(raw)));
        if (process.is_root) {
            spdlog::info("{} crossings, {} programs; {} bytes sent, {} received", stats_.crossings,
                         stats_.images, link_.stats().bytes_out, link_.stats().bytes_in);
            write_stats(WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw));
            tell_idle_rules();
        }
    }
    if (!last && policy_.mixed()) co_await before_exit(thread, filtered);
    trace::resume(tid);
}

void HomeSession::write_stats(int exit_status) {
    if (!options_.stats.enabled) return;
    uint64_t now = static_cast<uint64_t>(Clock::now().time_since_epoch().count());
    PagerStats pages = pager_.stats();
    StatsReport report;
    report.exit_status = exit_status;
    report.wall_s = static_cast<double>(now - started_at_ns_) / 1e9;
    report.crossings = stats_.crossings;
    report.images = stats_.images;
    report.drawn_home = stats_.drawn_home;
    report.drawn_away = stats_.drawn_away;
    report.calls_native = stats_.calls_native;
    report.calls_fd_owner = stats_.calls_fd_owner;
    report.calls_by_rule = stats_.calls_by_rule;
    report.calls_home = stats_.calls_home;
    report.calls_watched = futex_news_.watched();
    report.futex_wakes = stats_.futex_wakes;
    report.home_cpu = stats_.home_cpu;
    report.remote_cpu = stats_.remote_cpu;
    report.home = pages;
    report.remote = stats_.remote_pages;
    report.bytes_in = link_.stats().bytes_in;
    report.bytes_out = link_.stats().bytes_out;
    report.functions = stats_.functions;
    outputs_.report(report.words(), report.json());
}

// A rule that never matched is a slip, or for another program.
void HomeSession::tell_idle_rules() const {
    const std::vector<std::string> idle = rule_use_.idle();
    if (idle.empty() || !failure_.empty()) return;
    tell_user(fmt::format("matched nothing: {}", fmt::join(idle, ", ")));
}

}  // namespace gpr
