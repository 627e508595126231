#include <sys/ptrace.h>
#include <sys/user.h>

#include <cerrno>
#include <cstddef>

#include "base/address.h"
#include "monitor/tracee/debug_traps.h"
#include "monitor/tracee/ptrace.h"
#include "stub/layout.h"

namespace gpr {

namespace {

constexpr int set_user_dispatch = 0x4210;  // PTRACE_SET_SYSCALL_USER_DISPATCH_CONFIG, Linux 6.4
constexpr int user_dispatch_code = 2;      // SYS_USER_DISPATCH
constexpr uint64_t syscall_length = 2;     // of the instruction
constexpr size_t status_register = 6, control_register = 7;

struct UserDispatch {
    uint64_t on = 0, selector = 0;
    uint64_t allowed_begin = 0, allowed_size = 0;  // calls from here stop nobody
};

Result<void> stop_at_calls(pid_t tid, bool on) {
    UserDispatch how;
    if (on) how = {1, 0, GPR_STUB_CODE, page_size};
    if (ptrace(static_cast<__ptrace_request>(set_user_dispatch), tid, sizeof how, &how) != 0) {
        return fail(errno, "cannot have the kernel stop a thread at its system calls");
    }
    return {};
}

size_t place_of_register(size_t number) {
    return offsetof(user, u_debugreg) + number * sizeof(user::u_debugreg[0]);
}

Result<void> set_register(pid_t tid, size_t number, uint64_t value) {
    if (ptrace(PTRACE_POKEUSER, tid, place_of_register(number), value) != 0) {
        return fail(errno, "cannot set a debug register");
    }
    return {};
}

}  // namespace

// The control register is cleared first: the kernel refuses an address that does not fit the length
// that an earlier breakpoint had.
Result<void> set_debug_traps(pid_t tid, const DebugTraps& traps) {
    GPR_CHECK(set_register(tid, control_register, 0));
    for (size_t i = 0; traps.control != 0 && i < traps.addresses.size(); i++) {
        const bool used = traps.control >> (2 * i) & 3;
        if (used) GPR_CHECK(set_register(tid, i, traps.addresses[i]));
    }
    if (traps.control != 0) GPR_CHECK(set_register(tid, control_register, traps.control));
    return stop_at_calls(tid, traps.calls);
}

uint8_t hit_traps(pid_t tid) {
    errno = 0;
    const long status = ptrace(PTRACE_PEEKUSER, tid, place_of_register(status_register), nullptr);
    return errno == 0 ? static_cast<uint8_t>(status & 0xf) : 0;
}

std::optional<uint64_t> stopped_call(const siginfo_t& info) {
    const bool stopped = info.si_signo == SIGSYS && info.si_code == user_dispatch_code;
    return stopped ? std::optional(static_cast<uint64_t>(info.si_syscall)) : std::nullopt;
}

void stand_before_call(user_regs_struct& regs, uint64_t number) {
    regs.rip -= syscall_length;
    regs.rax = number;
    regs.orig_rax = ~0UL;
}

// The kernel looks whether a call stops its thread before it stops for a tracer at the call's
// entry.
void PassedCalls::let_pass(pid_t tid) {
    auto info = trace::signal_info(tid);
    auto regs = trace::registers(tid);
    const auto number = info ? stopped_call(*info) : std::nullopt;
    if (!number || !regs) return;
    stand_before_call(*regs, *number);
    if (!stop_at_calls(tid, false) || !trace::set_registers(tid, *regs)) return;
    passing_.insert(tid);
    trace::resume_to_call(tid);
}

bool PassedCalls::takes_stop(pid_t tid, const WaitStatus& status) {
    if (passing_.empty() || passing_.erase(tid) == 0 || status.ended()) return false;
    (void)stop_at_calls(tid, true);  // fails only if the thread is gone
    bool at_entry = status.kind == WaitStatus::Kind::syscall_stop;
    if (status.kind == WaitStatus::Kind::signal_stop && status.value == SIGTRAP) {
        // As it is reported without PTRACE_O_TRACESYSGOOD: ptrace(2).
        auto info = trace::signal_info(tid);
        at_entry = info && info->si_code == SIGTRAP;
    }
    return at_entry;
}

}  // namespace gpr
