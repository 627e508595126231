// What a process has used of the CPU here, for calls and for home, which adds what it has used
// there.

#include <sys/resource.h>
#include <sys/syscall.h>

#include <cstring>

#include "acceptor/worker.h"
#include "monitor/cpu_time.h"

namespace gpr {

namespace {
uint64_t nanoseconds(const timeval& t) {
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(t.tv_usec) * 1000;
}
}  // namespace

// As the kernel tells the process itself: in microseconds, and none of its parts ever shrinks.
Task<CpuTime> Worker::usage_of(RemoteProcess& process) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    if (!fragment || process.ending) co_return cpu_time_of(process.host_pid);
    StubThread& executor = fragment->executor();
    auto guard = co_await executor.lock();
    std::vector<Call> calls{
        Call{SYS_getrusage, {RUSAGE_SELF, executor.scratch_address().value}, 0}};
    co_await executor.run_locked(calls);
    rusage usage{};
    if (executor.dead() || calls[0].result != 0) co_return CpuTime{};
    std::memcpy(&usage, const_cast<uint8_t*>(executor.mailbox().slot(executor.slot()).scratch),
                sizeof usage);
    uint64_t user = nanoseconds(usage.ru_utime);
    co_return CpuTime{user + nanoseconds(usage.ru_stime), user};
}

Task<CpuTime> Worker::cpu_used(RemoteProcess& caller, pid_t tid, CpuTimeCall call) {
    if (call.of == CpuTimeCall::Of::children) co_return CpuTime{};  // home keeps those
    if (call.of == CpuTimeCall::Of::thread) {
        RemoteThread* thread = find_thread(caller.pid, call.id != 0 ? call.id : tid);
        co_return thread ? cpu_time_of_thread(caller.host_pid, thread->host_tid) : CpuTime{};
    }
    RemoteProcess* process = call.id != 0 ? find_process(call.id) : &caller;
    co_return process ? co_await usage_of(*process) : CpuTime{};
}

// To what home has answered.
Task<void> Worker::add_cpu_used(RemoteProcess& process, pid_t tid, Notification n) {
    auto call = cpu_time_call(n.number, n.args);
    if (!call || call->of == CpuTimeCall::Of::children) co_return;
    std::shared_ptr<Fragment> fragment = process.fragment;
    CpuTime used = co_await cpu_used(process, tid, *call);
    std::vector<std::byte> result(call->size);
    Address at{n.args[call->argument]};
    bool read = co_await pager_.read(*fragment, at, result);
    if (!read) co_return;
    add_cpu_time(n.number, *call, result, used);
    co_await pager_.write(*fragment, at, result);
}

Task<void> Worker::answer_cpu_time(Frame frame) {
    auto question = frame->session().getCpuQuestion();
    CpuTimeCall call;
    call.of = question.getOfThread() ? CpuTimeCall::Of::thread : CpuTimeCall::Of::process;
    call.id = question.getId();
    CpuTime used;
    if (RemoteProcess* process = find_process(question.getPid())) {
        used = co_await cpu_used(*process, question.getTid(), call);
    }
    FrameBuilder reply;
    auto answer = reply.session().initCpuAnswer();
    answer.setCookie(question.getCookie());
    answer.setTotalNs(used.total_ns);
    answer.setUserNs(used.user_ns);
    link_.send(reply, Priority::urgent);
}

}  // namespace gpr
