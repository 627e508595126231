// Calls with timeouts in a process that gpr leaves: Infection::renew_waits().
#include <sys/ptrace.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/log.h"
#include "monitor/tracee/infection.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/resume_request.h"
#include "monitor/tracee/resumed_wait.h"

namespace gpr {

namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;
constexpr uint64_t all_but_trap = ~(1ULL << (SIGTRAP - 1));

}  // namespace

void Infection::renew_waits() {
    for (StoppedThread& thread : threads_) {
        if (thread.tid == 0 || !thread.waits_since) continue;
        auto renewed = renew_wait(thread);
        if (renewed) continue;
        spdlog::debug("thread {}: {}", thread.tid, renewed.error().message());
        // It makes its call again, with its whole timeout.
        trace::set_registers(thread.tid, thread.regs);
        trace::set_signal_mask(thread.tid, thread.signal_mask);
        close_room();
    }
}

Result<> Infection::renew_wait(StoppedThread& thread) {
    GPR_CHECK(open_room());
    user_regs_struct begins = thread.regs;
    if (const auto limit = limit_of_restarted(thread.tid, thread.regs)) {
        const auto left = std::max(0ns, *thread.waits_since + limit->length - steady_clock::now());
        const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
        const timespec time{seconds.count(), (left - seconds).count()};
        GPR_TRY(const auto memory, RemoteMemory::open(threads_.front().tid));
        if (limit->in_memory && !memory.write_exact(room_, &time, sizeof time)) {
            return fail(EIO, "cannot tell the program how long it has to wait");
        }
        auto* arguments =
            std::array{&begins.rdi, &begins.rsi, &begins.rdx, &begins.r10}[limit->argument];
        *arguments =
            limit->in_memory
                ? room_.value
                : static_cast<uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
    }
    GPR_TRY(const auto after, interrupted_at_once(thread, begins));
    close_room();
    thread.regs.rax = after.rax;
    if (!trace::is_restart(static_cast<long>(after.rax))) thread.regs.orig_rax = ~0UL;
    return trace::set_registers(thread.tid, thread.regs);
}

// Makes the call of these registers, which are behind it, such that it does not wait.
Result<user_regs_struct> Infection::interrupted_at_once(StoppedThread& thread,
                                                        user_regs_struct regs) {
    regs.rax = regs.orig_rax, regs.orig_rax = ~0UL;
    regs.rip = syscall_instruction_.value;
    trace::set_signal_mask(thread.tid, all_but_trap);
    GPR_CHECK(trace::set_registers(thread.tid, regs));
    for (bool is_at_call = false; !is_at_call;) {
        trace::resume_to_call(thread.tid);
        GPR_TRY(const WaitStatus stop, await_step(thread.tid));
        is_at_call = stop.kind == WaitStatus::Kind::syscall_stop;
        thread.by_job_control |= !is_at_call && stop.kind != WaitStatus::Kind::event;
    }
    for (;;) {
        ptrace(PTRACE_INTERRUPT, thread.tid, nullptr, 0L);
        trace::resume_past_calls(thread.tid);
        GPR_TRY(const WaitStatus stop, await_step(thread.tid));
        if (stop.kind == WaitStatus::Kind::trap_stop) break;
        thread.by_job_control |= stop.kind != WaitStatus::Kind::event;
    }
    GPR_TRY(const auto after, trace::registers(thread.tid));
    trace::set_signal_mask(thread.tid, thread.signal_mask);
    return after;
}

}  // namespace gpr
