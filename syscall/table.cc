#include "syscall/table.h"

#include <sys/syscall.h>

#include <algorithm>
#include <vector>

#include "base/result.h"
#include "syscall/ioctl_memory.h"
#include "syscall/park.h"
#include "syscall/rows.h"

namespace gpr {
namespace {

using enum Verdict;

constexpr uint32_t every_bit = 0xffffffff;
constexpr uint32_t opcode_bits = 0x7fffffff;  // without IORING_REGISTER_USE_REGISTERED_RING
constexpr uint32_t futex_private = 128, futex_clock = 256;
constexpr uint32_t futex_command = ~(futex_private | futex_clock);

constexpr ArgumentRule rules[] = {
    {202, 1, ~futex_clock, 1 | futex_private, allow, allow, Condition::watched_calls,
     "FUTEX_WAKE_PRIVATE"},
    {202, 1, ~futex_clock, 10 | futex_private, allow, allow, Condition::watched_calls,
     "FUTEX_WAKE_BITSET_PRIVATE"},
    // A wake may concern a waiter on another node.
    {202, 1, futex_command, 1, notify, notify, Condition::mixed_session, "FUTEX_WAKE"},
    {202, 1, futex_command, 3, notify, notify, Condition::mixed_session, "FUTEX_REQUEUE"},
    {202, 1, futex_command, 4, notify, notify, Condition::mixed_session, "FUTEX_CMP_REQUEUE"},
    {202, 1, futex_command, 10, notify, notify, Condition::mixed_session, "FUTEX_WAKE_BITSET"},
    // These fail with EFAULT on a missing page instead of waiting for it, so it is fetched first.
    {202, 1, futex_command, 5, notify, notify, Condition::always, "FUTEX_WAKE_OP"},
    {202, 1, futex_command, 6, notify, notify, Condition::always, "FUTEX_LOCK_PI"},
    {202, 1, futex_command, 7, notify, notify, Condition::always, "FUTEX_UNLOCK_PI"},
    {202, 1, futex_command, 8, notify, notify, Condition::always, "FUTEX_TRYLOCK_PI"},
    {202, 1, futex_command, 11, notify, notify, Condition::always, "FUTEX_WAIT_REQUEUE_PI"},
    {202, 1, futex_command, 12, notify, notify, Condition::always, "FUTEX_CMP_REQUEUE_PI"},
    {202, 1, futex_command, 13, notify, notify, Condition::always, "FUTEX_LOCK_PI2"},
    // Vfork children are at home; the memory that they share with their parent is not.
    {202, 1, futex_private, futex_private, allow, notify, Condition::whole_session,
     "with FUTEX_PRIVATE_FLAG"},
    {202, 1, futex_private, 0, notify, notify, Condition::whole_session,
     "without FUTEX_PRIVATE_FLAG"},
    {454, 3, futex_private, futex_private, allow, notify, Condition::whole_session,
     "with FUTEX2_PRIVATE"},
    {454, 3, futex_private, 0, notify, notify, Condition::whole_session, "without FUTEX2_PRIVATE"},
    {455, 3, futex_private, futex_private, allow, notify, Condition::whole_session,
     "with FUTEX2_PRIVATE"},
    {455, 3, futex_private, 0, notify, notify, Condition::whole_session, "without FUTEX2_PRIVATE"},
    {454, 0, 0, 0, notify, notify, Condition::mixed_session, "futex_wake"},
    {456, 0, 0, 0, notify, notify, Condition::mixed_session, "futex_requeue"},
    // The word may be in shared memory that is used at home.
    {202, 1, futex_private, 0, notify, allow, Condition::always, "without FUTEX_PRIVATE_FLAG"},
    {449, 0, 0, 0, notify, allow, Condition::always, "futex_waitv"},
    {455, 3, futex_private, 0, notify, allow, Condition::always, "without FUTEX2_PRIVATE"},
    {456, 0, 0, 0, notify, allow, Condition::always, "futex_requeue"},
    // The child gets a copy of the memory here: what is elsewhere is fetched first.
    {56, 0, 0x100, 0, notify, notify, Condition::mixed_session, "without CLONE_VM"},
    {57, 0, 0, 0, notify, notify, Condition::mixed_session, "fork"},
    // The shadow may have the handler's mask, and another alternate stack.
    {15, 0, 0, 0, notify, notify, Condition::mixed_session, "rt_sigreturn"},
    {14, 0, 0, 0, notify, notify, Condition::watched_trap, "rt_sigprocmask"},
    {15, 0, 0, 0, notify, allow, Condition::always, "rt_sigreturn"},
    // An unsplit child is split before it creates threads.
    {56, 0, 0x10000, 0x10000, notify, notify, Condition::always, "CLONE_THREAD"},
    {56, 0, 0x400, 0x400, notify, notify, Condition::always, "CLONE_FILES"},
    {435, 0, 0, 0, notify, notify, Condition::always, "clone3"},
    // Pages pinned for a ring at home cannot move to the acceptor.
    {427, 1, opcode_bits, 0, notify, notify, Condition::mixed_session, "IORING_REGISTER_BUFFERS"},
    {427, 1, opcode_bits, 15, notify, notify, Condition::mixed_session, "IORING_REGISTER_BUFFERS2"},
    {427, 1, opcode_bits, 16, notify, notify, Condition::mixed_session,
     "IORING_REGISTER_BUFFERS_UPDATE"},
    // The program's userfaultfds are ours.
    {16, 1, 0xff00, 0xaa00, notify, notify, Condition::mixed_session, "of userfaultfd"},
    {16, 1, 0xffffffff, 0xc0686611, notify, notify, Condition::always, "PROCMAP_QUERY"},
    // Registrations of a process hold on every node.
    {324, 0, every_bit, 1 << 2, notify, notify, Condition::mixed_session,
     "REGISTER_GLOBAL_EXPEDITED"},
    {324, 0, every_bit, 1 << 4, notify, notify, Condition::mixed_session,
     "REGISTER_PRIVATE_EXPEDITED"},
    {324, 0, every_bit, 1 << 6, notify, notify, Condition::mixed_session,
     "REGISTER_EXPEDITED_SYNC_CORE"},
    {324, 0, every_bit, 1 << 8, notify, notify, Condition::mixed_session,
     "REGISTER_EXPEDITED_RSEQ"},
    // Children begin at home and inherit it there.
    {324, 0, every_bit, 1 << 2, notify, allow, Condition::always, "REGISTER_GLOBAL_EXPEDITED"},
    {324, 0, every_bit, 1 << 4, notify, allow, Condition::always, "REGISTER_PRIVATE_EXPEDITED"},
    {324, 0, every_bit, 1 << 6, notify, allow, Condition::always, "REGISTER_EXPEDITED_SYNC_CORE"},
    {324, 0, every_bit, 1 << 8, notify, allow, Condition::always, "REGISTER_EXPEDITED_RSEQ"},
    // CPU time is the sum over the nodes. Other clocks are read without a system call.
    {98, 0, 0, 0, notify, notify, Condition::mixed_session, "getrusage"},
    {100, 0, 0, 0, notify, notify, Condition::mixed_session, "times"},
    {61, 0, 0, 0, notify, notify, Condition::mixed_session, "wait4"},
    {247, 0, 0, 0, notify, notify, Condition::mixed_session, "waitid"},
    {228, 0, every_bit, 2, notify, notify, Condition::mixed_session, "CLOCK_PROCESS_CPUTIME_ID"},
    {228, 0, every_bit, 3, notify, notify, Condition::mixed_session, "CLOCK_THREAD_CPUTIME_ID"},
    {228, 0, 0x80000000, 0x80000000, notify, notify, Condition::mixed_session,
     "of a process or a thread"},
    {228, 0, every_bit, 2, notify, allow, Condition::always, "CLOCK_PROCESS_CPUTIME_ID"},
    {228, 0, every_bit, 3, notify, allow, Condition::always, "CLOCK_THREAD_CPUTIME_ID"},
    {228, 0, 0x80000000, 0x80000000, notify, allow, Condition::always, "of a process or a thread"},
    // No kernel sees all of the time that these count. A timer's id does not show which clock it
    // uses.
    {36, 0, every_bit, 1, notify, notify, Condition::mixed_session, "ITIMER_VIRTUAL"},
    {36, 0, every_bit, 2, notify, notify, Condition::mixed_session, "ITIMER_PROF"},
    {38, 0, every_bit, 1, notify, notify, Condition::mixed_session, "ITIMER_VIRTUAL"},
    {38, 0, every_bit, 2, notify, notify, Condition::mixed_session, "ITIMER_PROF"},
    {223, 0, 0, 0, notify, notify, Condition::mixed_session, "timer_settime"},
    {224, 0, 0, 0, notify, notify, Condition::mixed_session, "timer_gettime"},
    {225, 0, 0, 0, notify, notify, Condition::mixed_session, "timer_getoverrun"},
    {226, 0, 0, 0, notify, notify, Condition::mixed_session, "timer_delete"},
    {160, 0, every_bit, 0, notify, notify, Condition::mixed_session, "RLIMIT_CPU"},
    {302, 1, every_bit, 0, notify, notify, Condition::mixed_session, "RLIMIT_CPU"},
    // The room for the main stack to grow is mapped on every node.
    {160, 0, every_bit, 3, notify, notify, Condition::always, "RLIMIT_STACK"},
    {302, 1, every_bit, 3, notify, notify, Condition::always, "RLIMIT_STACK"},
    // The limit in home's kernel is wider than the program's.
    {97, 0, every_bit, 9, notify, notify, Condition::always, "RLIMIT_AS"},
    {160, 0, every_bit, 9, notify, notify, Condition::always, "RLIMIT_AS"},
    {302, 1, every_bit, 9, notify, notify, Condition::always, "RLIMIT_AS"},
    {97, 0, every_bit, 2, notify, notify, Condition::always, "RLIMIT_DATA"},
    {160, 0, every_bit, 2, notify, notify, Condition::always, "RLIMIT_DATA"},
    {302, 1, every_bit, 2, notify, notify, Condition::always, "RLIMIT_DATA"},
    // If all program code runs on one node, that node's kernel does these. An unsplit child is
    // split before it has such a timer, and who has one at an acceptor does not come home to rest.
    {36, 0, every_bit, 1, allow, allow, Condition::always, "ITIMER_VIRTUAL"},
    {36, 0, every_bit, 2, allow, allow, Condition::always, "ITIMER_PROF"},
    {38, 0, every_bit, 1, notify, notify, Condition::always, "ITIMER_VIRTUAL"},
    {38, 0, every_bit, 2, notify, notify, Condition::always, "ITIMER_PROF"},
    {222, 0, every_bit, 2, notify, notify, Condition::always, "CLOCK_PROCESS_CPUTIME_ID"},
    {222, 0, every_bit, 3, notify, notify, Condition::always, "CLOCK_THREAD_CPUTIME_ID"},
    {222, 0, 0x80000000, 0x80000000, notify, notify, Condition::always, "of a process or a thread"},
    {157, 0, every_bit, 25, allow, allow, Condition::always, "PR_GET_TSC"},
    {157, 0, every_bit, 40, notify, notify, Condition::mixed_session, "PR_GET_TID_ADDRESS"},
    {157, 0, every_bit, 40, notify, allow, Condition::always, "PR_GET_TID_ADDRESS"},
    // A thread's affinity holds on every node.
    {203, 0, 0, 0, notify, notify, Condition::mixed_session, "sched_setaffinity"},
    {204, 0, every_bit, 0, allow, allow, Condition::always, "of the caller"},
    // These belong to the thread on every node.
    {157, 0, every_bit, 26, notify, notify, Condition::always, "PR_SET_TSC"},
    {157, 0, every_bit, 29, notify, allow, Condition::always, "PR_SET_TIMERSLACK"},
    {157, 0, every_bit, 30, notify, allow, Condition::always, "PR_GET_TIMERSLACK"},
    {157, 0, every_bit, 21, notify, notify, Condition::always, "PR_GET_SECCOMP"},
    {157, 0, every_bit, 22, notify, notify, Condition::always, "PR_SET_SECCOMP"},
    {157, 0, every_bit, 35, notify, notify, Condition::always, "PR_SET_MM"},
    // Orphans may be helpers, of which the program must not know.
    {157, 0, every_bit, 36, notify, notify, Condition::always, "PR_SET_CHILD_SUBREAPER"},
    {272, 0, 0x100, 0x100, notify, notify, Condition::mixed_session, "CLONE_VM"},
    // Later children may be in that namespace, so a child must have its helpers before.
    {272, 0, 0x20000000, 0x20000000, notify, notify, Condition::always, "CLONE_NEWPID"},
    {272, 0, 0x80, 0x80, notify, notify, Condition::always, "CLONE_NEWTIME"},
    {308, 0, 0, 0, notify, notify, Condition::always, "setns"},
    // It would intercept the stub's calls, too.
    {157, 0, every_bit, 59, unknown, unknown, Condition::always, "PR_SET_SYSCALL_USER_DISPATCH"},
    // With it, pages that are executable and writable could not be taken.
    {157, 0, every_bit, 65, unknown, unknown, Condition::always, "PR_SET_MDWE"},
    {157, 0, every_bit, 66, unknown, unknown, Condition::always, "PR_GET_MDWE"},
    // What the process may use or can see of the CPU must be the same on every node.
    {158, 0, every_bit, 0x1012, notify, notify, Condition::always, "ARCH_SET_CPUID"},
    {158, 0, ~7u, 0x1020, notify, notify, Condition::always, "ARCH_GET_XCOMP_SUPP and its kin"},
    {158, 0, every_bit, 0x2001, notify, notify, Condition::always, "ARCH_MAP_VDSO_X32"},
    {158, 0, every_bit, 0x2002, notify, notify, Condition::always, "ARCH_MAP_VDSO_32"},
    {158, 0, every_bit, 0x2003, notify, notify, Condition::always, "ARCH_MAP_VDSO_64"},
    // Shadow stacks and tagged addresses are not carried by crossings.
    {158, 0, every_bit, 0x4002, refuse, refuse, Condition::always, "ARCH_ENABLE_TAGGED_ADDR"},
    {158, 0, every_bit, 0x5001, refuse, refuse, Condition::always, "ARCH_SHSTK_ENABLE"},
};

struct Index {
    std::array<const Row*, syscall_limit> by_number{};
    std::vector<const Row*> ordered;

    Index() {
        for (std::span<const Row> family :
             {descriptor_rows(), path_rows(), memory_rows(), process_rows(), signal_rows(),
              time_rows(), socket_rows(), ipc_rows(), system_rows()}) {
            for (const Row& row : family) {
                GPR_ASSERT(row.number < syscall_limit);
                GPR_ASSERT(by_number[row.number] == nullptr);
                by_number[row.number] = &row;
            }
        }
        std::ranges::copy_if(by_number, std::back_inserter(ordered),
                             [](const Row* row) { return row != nullptr; });
    }
};

const Index& index() {
    static const Index built;
    return built;
}

const ArgumentRule* matching_rule(uint32_t number, const std::array<uint64_t, 6>& args,
                                  const Conditions& conditions) {
    for (const ArgumentRule& rule : rules) {
        if (rule.number != number || !conditions.meet(rule.condition)) continue;
        if ((static_cast<uint32_t>(args[rule.argument]) & rule.mask) == rule.value) return &rule;
    }
    return nullptr;
}

bool owns_every_fd(const Row& row, const std::array<uint64_t, 6>& args, uint32_t fd_base) {
    for (size_t i = 0; i < args.size(); ++i) {
        if (row.arguments[i].kind != Kind::fd) continue;
        auto fd = static_cast<uint32_t>(args[i]);
        if (fd < fd_base || fd > INT32_MAX) return false;
    }
    return true;
}

bool is_reserved(uint32_t number) { return number == gpr_park_number; }

// A tracer that skips a call sets its number to -1; the kernel then keeps rax as it is.
constexpr uint32_t skipped_call = UINT32_MAX;

}  // namespace

bool Conditions::meet(Condition condition) const {
    switch (condition) {
        case Condition::always: return true;
        case Condition::mixed_session: return mixed_session;
        case Condition::whole_session: return !mixed_session;
        case Condition::watched_calls: return watched_calls;
        case Condition::watched_trap: return watched_trap;
    }
    return false;
}

const Row* find_row(uint32_t number) {
    return number < syscall_limit ? index().by_number[number] : nullptr;
}

bool is_told_unasked(uint64_t number) {
    const Row* row = find_row(static_cast<uint32_t>(number));
    return row && row->told_unasked();
}

const Details& details_of(uint64_t number) {
    static constexpr Details none{};
    const Row* row = find_row(static_cast<uint32_t>(number));
    return row ? row->details : none;
}

bool concerns_break(uint64_t number) {
    switch (number) {
        case SYS_clone:
        case SYS_clone3:
        case SYS_execve:
        case SYS_execveat:
        case SYS_fork:
        case SYS_personality:
        case SYS_prctl:
        case SYS_prlimit64:
        case SYS_ptrace:
        case SYS_setrlimit:
        case SYS_userfaultfd:
        case SYS_vfork: return true;
        default: return false;
    }
}

bool has_trait(uint64_t number, Trait trait) {
    const Row* row = find_row(static_cast<uint32_t>(number));
    return row && row->has(trait);
}

Handlers handlers_of(uint64_t number) {
    const Row* row = find_row(static_cast<uint32_t>(number));
    return row ? row->handlers : Handlers{};
}

std::span<const Row* const> all_rows() { return index().ordered; }

std::span<const ArgumentRule> argument_rules() { return rules; }

const char* name_of(Place place) {
    switch (place) {
        case Place::native: return "native";
        case Place::fd_owner: return "fd-owner";
        case Place::home: return "home";
        case Place::coherent: return "coherent";
        case Place::special: return "special";
        case Place::refused: return "refused";
    }
    return "?";
}

const char* name_of(Support support) {
    switch (support) {
        case Support::full: return "full";
        case Support::partial: return "partial";
        case Support::none: return "none";
    }
    return "?";
}

Verdict acceptor_verdict(uint32_t number, const std::array<uint64_t, 6>& args, uint32_t fd_base,
                         const Conditions& conditions) {
    if (is_reserved(number)) return notify;
    if (number == skipped_call) return allow;
    const Row* row = find_row(number);
    if (row == nullptr) return refuse;
    if (const auto* rule = matching_rule(number, args, conditions)) return rule->acceptor;
    switch (row->place) {
        case Place::native: return allow;
        case Place::refused: return refuse;
        case Place::fd_owner:
            if (row->lacks_fd(args)) return no_fd;
            if (number == SYS_ioctl && may_name_memory(args[1])) return notify;
            return owns_every_fd(*row, args, fd_base) ? allow : notify;
        case Place::home:
        case Place::coherent:
        case Place::special: return notify;
    }
    return notify;
}

Verdict home_verdict(uint32_t number, const std::array<uint64_t, 6>& args,
                     const Conditions& conditions) {
    if (is_reserved(number)) return notify;
    if (number == skipped_call) return allow;
    const Row* row = find_row(number);
    if (row == nullptr || row->place == Place::refused) return refuse;
    if (const auto* rule = matching_rule(number, args, conditions)) return rule->home;
    bool opens = conditions.stops_opens() && row->opens_by_name();
    return row->home_notify() || opens ? notify : allow;
}

}  // namespace gpr
