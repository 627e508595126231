#include "monitor/home/remote_usage.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "monitor/home/forwarded_call.h"
#include "monitor/home/home.h"
#include "monitor/home/taken_calls.h"
#include "monitor/node/usage_wire.h"
#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::home {

namespace {
constexpr size_t most_ended_children = 4096;

}  // namespace

void RemoteUsage::add_waited(HomeProcess& parent, pid_t child, std::span<std::byte> usage,
                             bool may_wait_again) {
    auto ended = parent.ended_children.find(child);
    if (ended == parent.ended_children.end()) return;
    if (!usage.empty()) add_to_rusage(usage, ended->second);
    if (may_wait_again) return;
    parent.used_by_children.join(ended->second);
    parent.ended_children.erase(ended);
}

RemoteUsage::RemoteUsage(Home& home) : home_(home), questions_(home.loop) {}

// An image, or the process, has ended at this acceptor.
void RemoteUsage::note_remote_usage(RemoteNode& node, pid_t pid, const Usage& used) {
    node.counts.cpu += used;
    HomeProcess* process = home_.find_process(pid);
    if (!process) return;
    process->used_by_ending += used;
    if (++process->ended_at < home_.acceptors.size()) return;
    process->used_by_images.join(std::exchange(process->used_by_ending, {}));
    process->ended_at = 0;
}

// We see a wait only if it asks for usage or is made at an acceptor. So a child that the kernel no
// longer has counts as waited for.
const Usage& RemoteUsage::used_by_children(HomeProcess& process) {
    std::erase_if(process.ended_children, [&](const auto& child) {
        if (parent_of(child.first) == process.pid) return false;
        process.used_by_children.join(child.second);
        return true;
    });
    return process.used_by_children;
}

Usage RemoteUsage::used_before(const HomeThread& caller, const UsageCall& call) {
    const HomeProcess& process = *caller.process;
    const bool by_id = call.id != 0;
    if (call.of == UsageCall::Of::children) return {};
    if (call.of == UsageCall::Of::process) {
        return by_id && call.id != process.pid ? Usage{} : process.used_by_images;
    }
    if (!by_id) return caller.used_before;
    auto thread = process.threads.find(call.id);
    return thread == process.threads.end() ? Usage{} : thread->second->used_before;
}

Task<void> RemoteUsage::note_used_by_threads(HomeProcess& process) {
    const pid_t pid = process.pid;
    const UsageCall call{UsageCall::Of::thread};
    std::vector<pid_t> tids;
    for (const auto& [tid, thread] : process.threads) {
        if (!thread->helper) tids.push_back(tid);
    }
    for (const pid_t tid : tids) {
        const ToldUsage told = co_await ask_usage(pid, tid, call);
        if (HomeThread* thread = home_.find_thread(pid, tid)) thread->used_before.join(told.used);
    }
}

// From now on its parent may wait for it. If the parent ignores SIGCHLD, the usage counts for
// nobody.
void RemoteUsage::credit_parent(HomeProcess& process) {
    constexpr uint64_t sigchld = 1ULL << (SIGCHLD - 1);
    HomeProcess* parent = home_.find_process(parent_of(process.pid));
    Usage used = process.used_by_images;
    used.join(used_by_children(process));
    if (!parent || used.total_ns == 0) return;
    if (trace::signal_set(parent->pid, "SigIgn:") & sigchld) return;
    if (parent->ended_children.size() >= most_ended_children) used_by_children(*parent);
    if (parent->ended_children.size() >= most_ended_children) parent->ended_children.clear();
    parent->ended_children[process.pid] = used;
}

// Adds to the result of a forwarded call, in the bounce area. The caller's own acceptor adds what
// is running there.
void RemoteUsage::add_remote_usage(const HomeThread& caller, const ForwardedCall& call) {
    HomeProcess& process = *caller.process;
    if (call.made.result < 0) return;
    const uint64_t* args = call.made.args;
    bool by_info = call.number == SYS_waitid;
    if (call.number == SYS_wait4 || by_info) {
        auto pid = static_cast<pid_t>(call.made.result);
        auto info = call.bytes(args[2], sizeof(siginfo_t));
        if (by_info && !info.empty()) {
            pid = info.get<pid_t>(offsetof(siginfo_t, si_pid)).to_pass_on();
        }
        auto usage = call.bytes(args[by_info ? 4 : 3], sizeof(rusage));
        auto told = usage.empty() ? std::vector<std::byte>() : usage.bytes(0, usage.size());
        add_waited(process, pid, told, by_info && args[3] & WNOWAIT);
        if (!told.empty()) usage.write(0, told);
        return;
    }
    auto tells = usage_call(call.number, args);
    if (!tells) return;
    auto result = call.bytes(args[tells->argument], tells->size);
    if (result.empty()) return;
    auto told = result.bytes(0, result.size());
    Usage used = call.used_at_others;
    used.join(used_before(caller, *tells));
    const bool own = tells->of != UsageCall::Of::thread && tells->id == 0;
    add_usage(call.number, *tells, told, used, own ? used_by_children(process) : Usage{});
    result.write(0, told);
}

// A thread at home makes such a call: adds what the acceptors report.
Task<void> RemoteUsage::usage_call_here(HomeThread& thread, Notification n) {
    HomeProcess& process = *thread.process;
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto tells = usage_call(n.number, n.args);
    auto taken = co_await home_.taken_calls.take_call(thread);
    if (!taken) co_return;
    int64_t result = co_await TakenCalls::make_call(*taken, n);
    if (taken->stub->dead()) co_return;
    if (tells && result >= 0) {
        Usage used = (co_await ask_usage(process.pid, thread.tid, *tells)).used;
        if (taken->stub->dead()) co_return;
        used.join(used_before(thread, *tells));
        std::vector<std::byte> told(tells->size);
        Address at{n.args[tells->argument]};
        bool read = co_await home_.pager.memory.read(*fragment, at, told);
        add_usage(n.number, *tells, told, used, used_by_children(process));
        if (read) co_await home_.pager.memory.write(*fragment, at, told);
    }
    co_await home_.taken_calls.return_from(thread, std::move(*taken), result);
}

Task<ToldUsage> RemoteUsage::ask_usage(pid_t pid, pid_t tid, UsageCall call, bool state,
                                       NodeId but) {
    if (call.of == UsageCall::Of::children || !home_.acceptors.reachable()) co_return ToldUsage{};
    FrameBuilder frame;
    auto question = frame.session().initUsageQuestion();
    question.setPid(pid);
    question.setTid(tid);
    question.setOfThread(call.of == UsageCall::Of::thread);
    question.setId(call.id);
    question.setMemory(call.memory);
    question.setState(state);
    std::vector<uint32_t> cookies;
    home_.acceptors.each(
        [&](RemoteNode& node) {
            cookies.push_back(questions_.begin());
            question.setCookie(cookies.back());
            node.link.send(frame, Priority::urgent);
        },
        but);
    ToldUsage all;
    for (uint32_t cookie : cookies) {
        ToldUsage told = co_await questions_.answer_to(cookie);
        all.used += told.used;
        if (told.state) all.state = told.state;
    }
    co_return all;
}

void RemoteUsage::on_usage_answer(wire::UsageAnswer::Reader answer) {
    questions_.answer(answer.getCookie(), told_usage(answer));
}

}  // namespace gpr::home
