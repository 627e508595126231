#include "monitor/tracee/interrupted_call.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>
#include <utility>

#include "base/fd.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/remote_memory_raw.h"
#include "monitor/tracee/resumed_wait.h"
#include "syscall/park.h"
#include "syscall/table.h"

namespace gpr {

namespace {

constexpr uint64_t syscall_size = 2;  // of the instruction

bool may_wait(const Row& row, const user_regs_struct& regs) {
    const auto command = static_cast<uint32_t>(regs.rsi);
    if (row.number == SYS_fcntl) return command == F_SETLKW || command == F_OFD_SETLKW;
    if (row.number != SYS_futex) return row.blocks();
    switch (command & FUTEX_CMD_MASK) {
        case FUTEX_WAKE:
        case FUTEX_REQUEUE:
        case FUTEX_CMP_REQUEUE:
        case FUTEX_WAKE_OP:
        case FUTEX_UNLOCK_PI:
        case FUTEX_TRYLOCK_PI:
        case FUTEX_WAKE_BITSET: return false;
        default: return true;
    }
}

// Calls such as read and write, which wait only if there is nothing to transfer yet. A call that is
// made in order to wait, such as poll, may end as it would have a moment later.
bool only_sometimes_waits(const Row& row) {
    return row.opens_by_name() || (row.place == Place::fd_owner && !row.polls());
}

}  // namespace

void restart_what_has_not_begun(pid_t tid, const IsUnseen& is_unseen) {
    auto regs = trace::registers(tid);
    bool interrupted = regs && static_cast<long>(regs->orig_rax) >= 0 &&
                       static_cast<long>(regs->rax) == -trace::restart_sys;
    if (!interrupted) return;
    const Row* row = find_row(static_cast<uint32_t>(regs->orig_rax));
    if (!row) return;
    const CallArguments args{regs->rdi, regs->rsi, regs->rdx, regs->r10, regs->r8, regs->r9};
    if (may_wait(*row, *regs) && !(only_sometimes_waits(*row) && is_unseen(*row, args))) return;
    regs->rax = static_cast<uint64_t>(-trace::restart_nointr);
    trace::set_registers(tid, *regs);
}

bool may_wait_to_open(pid_t tid, const Row& row, const CallArguments& args) {
    constexpr unsigned memory_devices = 1;  // such as /dev/null
    const int at = row.path_argument();
    std::array<char, PATH_MAX> name{};
    auto memory = RemoteMemory::open(tid);
    if (!memory || at < 0) return false;
    const size_t got = memory->read({args[static_cast<size_t>(at)]}, name.data(), name.size());
    // Its page has left since the kernel read it, so the call has begun.
    if (strnlen(name.data(), got) == got) return true;
    const bool absolute = name.front() == '/';
    const bool from_folder = at == 1 && static_cast<int>(args[0]) != AT_FDCWD;  // openat
    const std::string begin = absolute      ? "root"
                              : from_folder ? fmt::format("fd/{}", static_cast<int>(args[0]))
                                            : "cwd";
    const Fd folder(
        ::open(fmt::format("/proc/{}/{}", tid, begin).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    // Only what the kernel has cached: the program itself may serve the file system.
    open_how how{};
    how.flags = O_PATH | O_CLOEXEC;
    how.resolve = RESOLVE_CACHED | (absolute ? RESOLVE_IN_ROOT : 0);
    const Fd file(
        static_cast<int>(syscall(SYS_openat2, folder.get(), name.data(), &how, sizeof how)));
    if (!file) return errno == EAGAIN;
    struct statx its {};
    const int flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
    if (statx(file.get(), "", flags, STATX_TYPE, &its) != 0) return true;
    return S_ISFIFO(its.stx_mode) ||
           (S_ISCHR(its.stx_mode) && its.stx_rdev_major != memory_devices);
}

bool is_in_programs_call(const user_regs_struct& regs) {
    return static_cast<long>(regs.orig_rax) >= 0 && regs.orig_rax != gpr_park_number;
}

void end_interrupted_call(pid_t tid) {
    auto regs = trace::registers(tid);
    const bool waited =
        regs && is_in_programs_call(*regs) && trace::is_restart(static_cast<long>(regs->rax));
    if (!waited) return;
    regs->rax = static_cast<uint64_t>(-EINTR);
    regs->orig_rax = ~0UL;
    trace::set_registers(tid, *regs);
}

SuspendedCall suspended_by(const user_regs_struct& regs) {
    if (static_cast<long>(regs.orig_rax) < 0) return {};
    const Row* row = find_row(static_cast<uint32_t>(regs.orig_rax));
    if (!row || !may_wait(*row, regs)) return {};
    // Only our stop has ended such a wait; a handler would end it, with or without SA_RESTART.
    const long code =
        is_interrupted_wait(regs) ? trace::restart_nohand : -static_cast<long>(regs.rax);
    if (!trace::is_restart(-code) || code == trace::restart_nointr) return {};
    return {regs.rip - syscall_size, regs.orig_rax, code};
}

void suspend_call(ThreadContext& context) {
    const SuspendedCall call = suspended_by(context.regs);
    trace::rewind_interrupted_call(context.regs);
    if (call.code != 0) context.suspended = call;
}

SuspendedCall suspended_in(const ThreadContext& context, const SuspendedCall& before) {
    if (context.suspended.code != 0) return context.suspended;
    const bool stands_before =
        before.code != 0 && context.regs.rip == before.at && context.regs.rax == before.number;
    return stands_before ? SuspendedCall{before.at, before.number, before.code} : SuspendedCall{};
}

bool interrupt_suspended(const SuspendedCall& call, user_regs_struct& regs) {
    if (call.code == 0) return false;
    const bool in_call = static_cast<long>(regs.orig_rax) >= 0;
    const bool stands_before = !in_call && regs.rip == call.at && regs.rax == call.number;
    const bool is_unseen = in_call && regs.rip == call.at + syscall_size &&
                           regs.orig_rax == call.number &&
                           static_cast<long>(regs.rax) == -trace::restart_nointr;
    if (!stands_before && !is_unseen) return false;
    regs.rip = call.at + syscall_size;
    regs.orig_rax = call.number;
    regs.rax = static_cast<uint64_t>(-call.code);
    return true;
}

void interrupt_suspended(pid_t tid, SuspendedCall& call) {
    if (call.code == 0) return;
    auto regs = trace::registers(tid);
    // What another kernel has begun, this one cannot continue (restart_syscall), only repeat.
    if (call.code == trace::restart_block) call.code = trace::restart_nohand;
    if (regs && interrupt_suspended(call, *regs)) trace::set_registers(tid, *regs);
    call = {};
}

void note_reported(SuspendedCall& call, uint32_t number, uint64_t instruction_pointer) {
    const bool again = instruction_pointer == call.at + syscall_size && number == call.number;
    if (!again || std::exchange(call.reported, true)) call = {};
}

bool goes_on_with_call(const Mapping& code, const user_regs_struct& regs) {
    bool may = regs.rax == SYS_restart_syscall && code.content && code.range.contains({regs.rip});
    if (!may) return false;
    constexpr std::array<uint8_t, 2> syscall_instruction{0x0f, 0x05};
    std::array<uint8_t, 2> stands_at{};
    uint64_t offset = code.content_offset + (regs.rip - code.range.begin.value);
    ssize_t got =
        pread(code.content->get(), stands_at.data(), stands_at.size(), static_cast<off_t>(offset));
    return got == 2 && stands_at == syscall_instruction;
}

}  // namespace gpr
