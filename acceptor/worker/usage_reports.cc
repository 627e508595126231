#include "acceptor/worker/usage_reports.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "acceptor/worker/worker.h"
#include "monitor/node/usage_wire.h"

namespace gpr::worker {

namespace {
uint64_t nanoseconds(const timeval& t) {
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(t.tv_usec) * 1000;
}
}  // namespace

// As the kernel reports it to the process itself: in microseconds, and never decreasing.
Task<Usage> UsageReports::usage_of(RemoteProcess& process) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    bool asks = fragment && fragment->has_helpers() && process.life != RemoteProcess::Life::ending;
    if (!asks) co_return usage_of_process(process.host_pid);  // it is just beginning or ending
    StubThread& executor = fragment->executor();
    auto guard = co_await executor.lock();
    std::vector<Call> calls{
        Call{SYS_getrusage, {RUSAGE_SELF, executor.scratch_address().value}, 0}};
    co_await executor.run_locked(calls);
    if (executor.dead() || calls[0].result != 0) co_return Usage{};
    rusage usage = executor.scratch().get<rusage>().to_pass_on();
    uint64_t user = nanoseconds(usage.ru_utime);
    Usage used{user + nanoseconds(usage.ru_stime), user};
    used.minor_faults = static_cast<uint64_t>(usage.ru_minflt);
    used.major_faults = static_cast<uint64_t>(usage.ru_majflt);
    used.peak_bytes = static_cast<uint64_t>(usage.ru_maxrss) << 10;
    co_return used;
}

Task<Usage> UsageReports::used_here(RemoteProcess& caller, pid_t tid, UsageCall call) {
    if (call.of == UsageCall::Of::children) co_return Usage{};  // home counts those
    pid_t host_pid = caller.host_pid;
    Usage used;
    if (call.of == UsageCall::Of::thread) {
        RemoteThread* thread = worker_.find_thread(caller.pid, call.id != 0 ? call.id : tid);
        if (!thread) co_return used;
        used = usage_of_thread(host_pid, thread->host_tid);
    } else {
        RemoteProcess* process = call.id != 0 ? worker_.find_process(call.id) : &caller;
        if (!process) co_return used;
        host_pid = process->host_pid;
        used = co_await usage_of(*process);
    }
    if (call.memory) add_memory_of(host_pid, used);
    co_return used;
}

// Adds to home's answer.
Task<void> UsageReports::add_used_here(RemoteProcess& process, pid_t tid, Notification n) {
    auto call = usage_call(n.number, n.args);
    if (!call || call->of == UsageCall::Of::children) co_return;
    std::shared_ptr<Fragment> fragment = process.fragment;
    Usage used = co_await used_here(process, tid, *call);
    std::vector<std::byte> result(call->size);
    Address at{n.args[call->argument]};
    bool read = co_await worker_.pager.memory.read(*fragment, at, result);
    if (!read) co_return;
    add_usage(n.number, *call, result, used);
    co_await worker_.pager.memory.write(*fragment, at, result);
}

Task<void> UsageReports::answer_usage(Frame frame) {
    auto question = frame->session().getUsageQuestion();
    UsageCall call;
    call.of = question.getOfThread() ? UsageCall::Of::thread : UsageCall::Of::process;
    call.id = question.getId();
    call.memory = question.getMemory();
    Usage used;
    if (RemoteProcess* process = worker_.find_process(question.getPid())) {
        used = co_await used_here(*process, question.getTid(), call);
    }
    FrameBuilder reply;
    auto answer = reply.session().initUsageAnswer();
    answer.setCookie(question.getCookie());
    usage_to_wire(used, answer.initUsed());
    pid_t tid = question.getTid() != 0 ? question.getTid() : question.getPid();
    RemoteThread* thread =
        question.getState() ? worker_.find_thread(question.getPid(), tid) : nullptr;
    if (thread && thread->here()) {
        ThreadState now = thread_state(thread->host_tid);
        auto state = answer.initState();
        state.setLetter(static_cast<uint8_t>(now.letter));
        state.setWaitsIn(now.waits_in);
    }
    worker_.link.send(reply, Priority::urgent);
}

}  // namespace gpr::worker
