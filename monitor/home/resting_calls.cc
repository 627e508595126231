#include "monitor/home/resting_calls.h"

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
#include "monitor/home/namespaces.h"
#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/remote_memory_raw.h"
#include "syscall/call_choice.h"
#include "syscall/resting_filter.h"
#include "syscall/table.h"

namespace gpr::home {

namespace {

// Counters and locks are small; where data is shared, both sides had better be at the acceptor.
constexpr uint64_t most_shared_at_rest = 64 << 10;

// Whether mmap makes shared memory that may be written, now or after mprotect.
bool may_write_shared(pid_t pid, const Notification& n) {
    const bool shared = (n.args[3] & MAP_TYPE) != MAP_PRIVATE;
    if (!shared || (n.args[2] & PROT_WRITE) || (n.args[3] & MAP_ANONYMOUS)) return shared;
    const int flags = descriptor_flags(pid, static_cast<int>(n.args[4]));
    return (flags & O_ACCMODE) != O_RDONLY;
}

// Whether mmap maps a little of a file. Once the process goes, this is used at home as long as
// others use it, too: decision 29.
bool maps_little_of_file(pid_t pid, const Notification& n) {
    if ((n.args[3] & MAP_ANONYMOUS) || n.args[1] > most_shared_at_rest) return false;
    struct stat file {};
    const auto path = fmt::format("/proc/{}/fd/{}", pid, static_cast<int>(n.args[4]));
    return stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode);
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
    if (memory_call_of(n.number) == MemoryCall::map) {
        return may_write_shared(process.pid, n) && !maps_little_of_file(process.pid, n);
    }
    if (details_of(n.number).limit.resource >= 0) return must_widen(process, n.number, n.args);
    switch (handlers_of(n.number).here) {
        case AtHome::fork:
            return n.number == SYS_clone3 && shares_more_than_threads(process.pid, n);
        case AtHome::children:
            return n.number == SYS_unshare && Namespaces::changes_children(n.args[0]);
        default: return false;
    }
}

}  // namespace gpr::home
