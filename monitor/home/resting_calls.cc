#include "monitor/home/resting_calls.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include "monitor/home/acceptor_files.h"
#include "monitor/home/detachment.h"
#include "monitor/home/fd_names.h"
#include "monitor/home/filters.h"
#include "monitor/home/home.h"
#include "monitor/home/memory_limit.h"
#include "monitor/home/memory_sharers.h"
#include "monitor/node/huge_pages.h"
#include "monitor/tracee/descriptor_kinds.h"
#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/remote_memory_raw.h"
#include "syscall/call_choice.h"
#include "syscall/resting_filter.h"
#include "syscall/table.h"

namespace gpr::home {

namespace {

// Memory of which no page can be moved, or that somebody at an acceptor uses already; any other
// that it shares it takes along when it goes.
bool maps_what_cannot_go(const Home& home, const HomeProcess& process, const Notification& n) {
    if (n.args[3] & MAP_HUGETLB) return has_huge_pages();
    if ((n.args[3] & MAP_TYPE) == MAP_PRIVATE) return false;
    if (n.args[3] & MAP_ANONYMOUS) return false;
    const int flags = descriptor_flags(process.pid, static_cast<int>(n.args[4]));
    if (!(n.args[2] & PROT_WRITE) && (flags & O_ACCMODE) == O_RDONLY) return false;
    struct statx file {};
    const auto path = fmt::format("/proc/{}/fd/{}", process.pid, static_cast<int>(n.args[4]));
    if (is_descriptor(path, io_uring_descriptor)) return false;  // who has one stays at home
    // Without asking the file system, which the program itself may serve (FUSE).
    const bool known = statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &file) == 0;
    const bool of_device = known && !S_ISREG(file.stx_mode);
    return of_device || has_huge_pages(path) || maps_memory_of_split(home, process, n);
}

// pid: 0 for the caller, which rests, so that its limits are the kernel's.
bool has_wider_limits(Home& home, pid_t pid) {
    const HomeProcess* process = pid == 0 ? nullptr : home.find_process(pid);
    return process && !process->rest && (process->fragment || !process->memory_limits.empty());
}

bool shares_more_than_threads(pid_t pid, const Notification& n) {
    uint64_t flags = 0;
    auto memory = RemoteMemory::open(pid);
    if (!memory || !memory->read_exact({n.args[0]}, &flags, sizeof flags)) return false;
    if (flags & CLONE_UNTRACED) return true;
    if (flags & CLONE_THREAD) return false;
    return (flags & CLONE_FILES) || (flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VM;
}

}  // namespace

Notification call_of(const HomeThread& thread, const user_regs_struct& regs) {
    Notification n{};
    n.tid = thread.tid;
    n.number = static_cast<uint32_t>(regs.orig_rax);
    n.instruction_pointer = regs.rip;
    const uint64_t args[6] = {regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9};
    std::ranges::copy(args, n.args);
    return n;
}

std::string name_of_call(uint32_t number) {
    const Row* row = find_row(number);
    return row ? row->name : fmt::format("call {}", number);
}

bool cannot_rest_with(Home& home, const HomeProcess& process, const Notification& n) {
    if (!process.rest || process.rest->settles || !process.can_be_split() ||
        !home.acceptors.reachable()) {
        return false;
    }
    if (home.detachment.is_under_way()) return false;
    if (ends_rest(n.number, n.args) || installs_filter(n.number, n.args)) return true;
    if (home.acceptor_files.owner_of(n) || home.fd_names.concerns(process, n.number, n.args) ||
        home.acceptor_files.may_use_acceptors_file(process, n)) {
        return true;
    }
    switch (memory_call_of(n.number)) {
        case MemoryCall::map: return maps_what_cannot_go(home, process, n);
        case MemoryCall::attach: return maps_memory_of_split(home, process, n);
        default: break;
    }
    if (const auto pid = limited_by(n.number, n.args)) return has_wider_limits(home, *pid);
    switch (handlers_of(n.number).here) {
        case AtHome::fork:
            return n.number == SYS_clone3 && shares_more_than_threads(process.pid, n);
        default: return false;
    }
}

}  // namespace gpr::home
