#include "monitor/home/debugged_traps.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "monitor/home/debugged_signals.h"
#include "monitor/tracee/context_raw.h"
#include "monitor/tracee/fault_origin.h"

namespace gpr::home {

namespace {
// Whether the call returns to the instruction after it.
bool returns_there(uint64_t number) {
    return number != SYS_rt_sigreturn && number != SYS_exit && number != SYS_exit_group;
}
}  // namespace

bool DebuggedTraps::set_hardware(const debug::HardwareBreakpoint& one, bool there) {
    if (there) return threads_.hardware().add(one);
    threads_.hardware().remove(one);
    return true;
}

void DebuggedTraps::catch_calls(debug::CaughtCalls calls) {
    calls_ = std::move(calls);
    threads_.stop_at_calls(calls_.any);
}

void DebuggedTraps::catch_forks(bool forks, bool vforks) {
    forks_ = forks;
    vforks_ = vforks;
}

bool DebuggedTraps::catches(pid_t tid, const siginfo_t& info) {
    const auto number = stopped_call(info);
    const auto known = goes_on_.find(tid);
    const bool told =
        known != goes_on_.end() && known->second == reinterpret_cast<uint64_t>(info.si_call_addr);
    // Kept until the call returns: the thread may cross, and stop at the same call again.
    if (told && !returning_.contains(tid)) goes_on_.erase(known);
    return number && !told && calls_.contains(*number);
}

void DebuggedTraps::note_hits(pid_t tid, const siginfo_t& info, uint8_t hits) {
    hits_.erase(tid);
    const bool by_processor = info.si_signo == SIGTRAP && info.si_code > 0 && hits != 0;
    if (by_processor && !is_breakpoint(info)) hits_[tid] = hits;
}

void DebuggedTraps::find_cause(ThreadContext& context, siginfo_t& info, debug::StopReason& why) {
    const pid_t tid = why.tid;
    if (const auto number = stopped_call(info)) {
        context.regs.rip = reinterpret_cast<uint64_t>(info.si_call_addr);  // behind the instruction
        context.regs.orig_rax = *number;
        context.regs.rax = static_cast<uint64_t>(-ENOSYS);
        before_[tid] = {*number, context.regs.rip};
        why.call = {*number, true};
        why.value = info.si_signo = SIGTRAP;
        info.si_code = SIGTRAP | 0x80;  // as with PTRACE_O_TRACESYSGOOD
    }
    const auto hits = hits_.find(tid);
    if (hits == hits_.end() || why.at_breakpoint) return;
    const auto call = returning_.find(tid);
    if (!threads_.is_there(tid, hits->second)) {
        why.hardware = threads_.hardware().hit(hits->second);
    } else if (call != returning_.end()) {
        why.call = {call->second, false};
        context.regs.orig_rax = call->second;
        shows_call_.insert(tid);
        returning_.erase(call);
        goes_on_.erase(tid);
        threads_.forget_stop_at(tid);
    }
    hits_.erase(hits);
}

bool DebuggedTraps::comes_again(pid_t tid, ThreadContext& context, const siginfo_t& info) {
    if (const auto number = stopped_call(info)) {
        // A thread that comes from an acceptor is in front of the call already.
        const bool behind = context.regs.rip == reinterpret_cast<uint64_t>(info.si_call_addr);
        if (behind) stand_before_call(context.regs, *number);
        return true;
    }
    const auto hits = hits_.find(tid);
    if (hits == hits_.end()) return is_raised_by_instruction(info);
    const auto hit = threads_.hardware().hit(hits->second);
    // A data access does not trap again when the thread continues; an instruction does.
    if (hit && hit->kind != debug::HardwareBreakpoint::Kind::execution) return false;
    hits_.erase(hits);
    context.regs.eflags &= ~resume_flag;
    return true;
}

void DebuggedTraps::prepare(pid_t tid, ThreadContext& context, bool tells_return) {
    if (shows_call_.erase(tid) != 0) context.regs.orig_rax = ~0UL;
    const auto its = before_.find(tid);
    if (its == before_.end()) return;
    const Before before = its->second;
    before_.erase(its);
    const uint64_t number = context.regs.orig_rax;
    const bool stands_there = context.regs.rip == before.rip;
    context.regs.orig_rax = ~0UL;
    if (!stands_there || static_cast<int64_t>(number) < 0) return;
    stand_before_call(context.regs, number);
    goes_on_[tid] = before.rip;
    const bool stops = tells_return && returns_there(number) && threads_.stop_at(tid, {before.rip});
    if (stops) returning_[tid] = number;
}

void DebuggedTraps::clear() {
    calls_ = {};
    forks_ = vforks_ = false;
    threads_.clear();
}

void DebuggedTraps::on_thread_end(pid_t tid) {
    threads_.on_thread_end(tid);
    hits_.erase(tid);
    before_.erase(tid);
    shows_call_.erase(tid);
    goes_on_.erase(tid);
    returning_.erase(tid);
}

void DebuggedTraps::on_exec() {
    threads_.on_exec();
    hits_.clear();
    before_.clear();
    shows_call_.clear();
    goes_on_.clear();
    returning_.clear();
}

}  // namespace gpr::home
