// CPU time is used on every node and told as one sum: here is what the acceptor's part adds.

#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

#include "monitor/cpu_time.h"
#include "monitor/forwarded_call.h"
#include "monitor/home_session.h"
#include "monitor/process_stat.h"

namespace gpr {

namespace {
constexpr size_t most_ended_children = 4096;
}  // namespace

// The image, or the process, has ended there.
void HomeSession::note_remote_cpu(pid_t pid, const CpuTime& used) {
    stats_.remote_cpu += used;
    if (HomeProcess* process = find_process(pid)) process->cpu_of_images += used;
}

// Its parent may wait for it from now on.
void HomeSession::credit_parent(const HomeProcess& process) {
    HomeProcess* parent = find_process(parent_of(process.pid));
    CpuTime used = process.cpu_of_images;
    used += process.cpu_of_children;
    if (!parent || used.total_ns == 0) return;
    // Where threads run at home, only those waits are seen that ask for the usage.
    if (policy_.mixed()) {
        parent->cpu_of_children += used;
        if (parent->ended_children.size() >= most_ended_children) parent->ended_children.clear();
    }
    parent->ended_children[process.pid] = used;
}

// Between a forwarded call and its answer: whose results lie where the arguments point. What runs
// at the acceptor now is added there.
void HomeSession::add_remote_cpu(HomeProcess& process, const ForwardedCall& call) {
    if (call.made.result < 0) return;
    const uint64_t* args = call.made.args;
    bool by_info = call.number == SYS_waitid;
    if (call.number == SYS_wait4 || by_info) {
        auto pid = static_cast<pid_t>(call.made.result);
        auto info = call.bytes(args[2], sizeof(siginfo_t));
        if (by_info && !info.empty()) {
            std::memcpy(&pid, info.data() + offsetof(siginfo_t, si_pid), sizeof pid);
        }
        add_waited(process, pid, call.bytes(args[by_info ? 4 : 3], sizeof(rusage)),
                   policy_.mixed() || (by_info && args[3] & WNOWAIT));
        return;
    }
    auto tells = cpu_time_call(call.number, args);
    if (!tells || tells->of == CpuTimeCall::Of::thread || tells->id != 0) return;
    auto result = call.bytes(args[tells->argument], tells->size);
    if (result.empty()) return;
    add_cpu_time(call.number, *tells, result, process.cpu_of_images, process.cpu_of_children);
}

// keep: the child is not gone for the parent, or is already in its sum.
void HomeSession::add_waited(HomeProcess& parent, pid_t child, std::span<std::byte> usage,
                             bool keep) {
    auto ended = parent.ended_children.find(child);
    if (ended == parent.ended_children.end()) return;
    if (!usage.empty()) add_usage(usage, ended->second);
    if (keep) return;
    parent.cpu_of_children += ended->second;
    parent.ended_children.erase(ended);
}

// A thread that runs here asks; what it has used at the acceptor is known there.
Task<void> HomeSession::cpu_time_call_here(HomeThread& thread, Notification n) {
    HomeProcess& process = *thread.process;
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto tells = cpu_time_call(n.number, n.args);
    auto taken = co_await take_call(thread);
    if (!taken) co_return;
    int64_t result = co_await make_call(*taken, n);
    if (taken->stub->dead()) co_return;
    if (tells && result >= 0) {
        CpuTime used = co_await ask_cpu_time(process.pid, thread.tid, *tells);
        if (taken->stub->dead()) co_return;
        bool own = tells->of != CpuTimeCall::Of::thread && tells->id == 0;
        if (own) used += process.cpu_of_images;
        std::vector<std::byte> told(tells->size);
        Address at{n.args[tells->argument]};
        bool read = co_await pager_.read(*fragment, at, told);
        add_cpu_time(n.number, *tells, told, used, process.cpu_of_children);
        if (read) co_await pager_.write(*fragment, at, told);
    }
    co_await return_from(thread, std::move(*taken), result);
}

Task<CpuTime> HomeSession::ask_cpu_time(pid_t pid, pid_t tid, CpuTimeCall call) {
    if (call.of == CpuTimeCall::Of::children || !link_open_) co_return CpuTime{};
    uint32_t cookie = next_cpu_question_++;
    FrameBuilder frame;
    auto question = frame.session().initCpuQuestion();
    question.setCookie(cookie);
    question.setPid(pid);
    question.setTid(tid);
    question.setOfThread(call.of == CpuTimeCall::Of::thread);
    question.setId(call.id);
    auto& answer = cpu_answers_[cookie] = std::make_unique<OneShot<CpuTime>>(loop_);
    OneShot<CpuTime>& done = *answer;
    link_.send(frame, Priority::urgent);
    CpuTime used = co_await done;
    cpu_answers_.erase(cookie);
    co_return used;
}

void HomeSession::on_cpu_answer(wire::CpuAnswer::Reader answer) {
    auto it = cpu_answers_.find(answer.getCookie());
    if (it != cpu_answers_.end()) it->second->set({answer.getTotalNs(), answer.getUserNs()});
}

}  // namespace gpr
