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

#include "base/fd.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/remote_memory_raw.h"
#include "syscall/park.h"
#include "syscall/table.h"

namespace gpr {

namespace {

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
    if (strnlen(name.data(), got) == got) return false;
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

void end_interrupted_call(pid_t tid) {
    auto regs = trace::registers(tid);
    bool waited = regs && static_cast<long>(regs->orig_rax) >= 0 &&
                  regs->orig_rax != gpr_park_number &&
                  trace::is_restart(static_cast<long>(regs->rax));
    if (!waited) return;
    regs->rax = static_cast<uint64_t>(-EINTR);
    regs->orig_rax = ~0UL;
    trace::set_registers(tid, *regs);
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
