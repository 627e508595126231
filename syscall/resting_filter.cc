#include "syscall/resting_filter.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <map>
#include <optional>

#include "base/result.h"
#include "syscall/filter_program.h"
#include "syscall/table.h"

namespace gpr {
namespace {

using Label = FilterProgram::Label;

// always: the process does not rest any more then. asked: somebody looks at the circumstances.
enum class When : uint8_t { always, asked };

// Stopped where the argument, masked, has the value; or where it has not.
struct Stop {
    uint32_t number;
    When when = When::always;
    uint8_t argument = 0;
    uint32_t mask = 0;  // of the low 32 bits; 0: whatever the arguments are
    uint32_t value = 0;
    bool unless = false;
};

using enum When;
constexpr uint32_t every_bit = ~0U;
constexpr uint32_t clone_memory = CLONE_VM | CLONE_VFORK | CLONE_THREAD;
constexpr uint32_t clone_files = CLONE_FILES | CLONE_THREAD;
constexpr uint32_t without_following = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH;
constexpr uint32_t pr_set_mdwe = 65;

constexpr Stop stops[] = {
    // A filter of its own must not judge our preparation.
    {SYS_seccomp, asked},
    {SYS_prctl, asked, 0, every_bit, PR_SET_SECCOMP},
    {SYS_prctl, asked, 0, every_bit, PR_GET_SECCOMP},
    {SYS_prctl, always, 0, every_bit, PR_SET_CHILD_SUBREAPER},
    // Memory that others have as well, or of which no page can be moved.
    {SYS_mmap, asked, 3, MAP_SHARED, MAP_SHARED},
    {SYS_mmap, asked, 3, MAP_HUGETLB, MAP_HUGETLB},
    {SYS_shmat, asked},
    {SYS_pkey_alloc, asked},  // to say that there is no key
    {SYS_prctl, always, 0, every_bit, pr_set_mdwe},
    // Children that share more than files of the parent.
    {SYS_clone, always, 0, CLONE_UNTRACED, CLONE_UNTRACED},
    {SYS_clone, always, 0, clone_files, CLONE_FILES},
    {SYS_clone, always, 0, clone_memory, CLONE_VM},
    {SYS_clone3, asked},
    // Time and memory that are used at an acceptor count as well.
    {SYS_prlimit64, asked, 0, every_bit, 0, true},  // of another process
    {SYS_getrusage, asked},
    {SYS_times, asked},
    // Of who traces others; and they tell of that usage.
    {SYS_ptrace, asked},
    {SYS_wait4, asked},
    {SYS_waitid, asked},
};

// Of calls that look for a file: those that may follow a link, in an argument of flags.
std::optional<Stop> follows_links(const Row& row) {
    switch (row.number) {
        case SYS_newfstatat: return Stop{SYS_newfstatat, asked, 3, without_following, 0};
        case SYS_statx: return Stop{SYS_statx, asked, 2, without_following, 0};
        case SYS_stat:
        case SYS_access:
        case SYS_faccessat:
        case SYS_faccessat2: return Stop{row.number, asked};
        default: break;
    }
    if (row.opens_by_name()) return Stop{row.number, asked};
    return std::nullopt;
}

class Builder {
public:
    Builder(bool names, uint32_t stub_word) : names_(names) {
        allow_ = program_.ret(SECCOMP_RET_ALLOW);
        stop_ = unless_stub(SECCOMP_RET_TRACE | resting_filter_mark, stub_word);
        refuse_ = unless_stub(SECCOMP_RET_ERRNO | ENOSYS, stub_word);
        unknown_ = unless_stub(SECCOMP_RET_ERRNO | EINVAL, stub_word);
    }

    std::vector<sock_filter> build() {
        std::map<uint32_t, Label> actions;
        for (const Row* row : all_rows()) actions[row->number] = action_of(*row);
        program_.by_architecture(program_.by_number(actions, allow_), allow_);
        auto built = program_.finish();
        GPR_ASSERT(built.size() < BPF_MAXINSNS);
        return built;
    }

private:
    Label unless_stub(uint32_t action, uint32_t stub_word) {
        Label otherwise = program_.ret(action);
        return program_.by_caller(stub_word, allow_, otherwise);
    }

    Label action_of(const Row& row) {
        if (row.place == Place::refused) return refuse_;
        Label action = allow_;
        for (const Stop& stop : stops) {
            if (stop.number == row.number) action = test(stop, action);
        }
        for (const ArgumentRule& rule : argument_rules()) {  // what no session allows
            const bool refuses = rule.home == Verdict::refuse || rule.home == Verdict::unknown;
            if (rule.number != row.number || !refuses || !Conditions{}.meet(rule.condition))
                continue;
            const Label refused = rule.home == Verdict::refuse ? refuse_ : unknown_;
            action = program_.by_argument(rule.argument, rule.mask, rule.value, refused, action);
        }
        const auto look = names_ && row.path_argument() >= 0 ? follows_links(row) : std::nullopt;
        if (look && row.number == SYS_openat) return opens(action);
        return look ? test(*look, action) : action;
    }

    // A walk through a tree opens what it has found in a folder: below that folder's descriptor,
    // and never by way of a link.
    Label opens(Label otherwise) {
        const Label below = program_.by_argument(2, O_NOFOLLOW, O_NOFOLLOW, otherwise, stop_);
        return program_.by_argument(0, every_bit, static_cast<uint32_t>(AT_FDCWD), stop_, below);
    }

    Label test(const Stop& stop, Label otherwise) {
        if (stop.mask == 0) return stop_;
        Label yes = stop.unless ? otherwise : stop_, no = stop.unless ? stop_ : otherwise;
        return program_.by_argument(stop.argument, stop.mask, stop.value, yes, no);
    }

    FilterProgram program_;
    bool names_;
    Label allow_ = 0, stop_ = 0, refuse_ = 0, unknown_ = 0;
};

}  // namespace

bool ends_rest(uint32_t number, const uint64_t* args) {
    return std::ranges::any_of(stops, [&](const Stop& stop) {
        if (stop.number != number || stop.when != When::always) return false;
        return ((static_cast<uint32_t>(args[stop.argument]) & stop.mask) == stop.value) !=
               stop.unless;
    });
}

std::vector<sock_filter> resting_filter(bool names, uint32_t stub_word) {
    return Builder(names, stub_word).build();
}

std::vector<sock_filter> homecoming_filter(bool tracers, uint32_t stub_word) {
    constexpr uint32_t of_some_process = 0x80000000;  // clock_getcpuclockid(3)
    FilterProgram program;
    const Label allow = program.ret(SECCOMP_RET_ALLOW);
    const Label trace = program.ret(SECCOMP_RET_TRACE | resting_filter_mark);
    const Label stop = program.by_caller(stub_word, allow, trace);
    Label clock = program.by_argument(0, of_some_process, of_some_process, stop, allow);
    for (const uint32_t own : {CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID}) {
        clock = program.by_argument(0, every_bit, own, stop, clock);
    }
    std::map<uint32_t, Label> calls{{SYS_clock_gettime, clock}};
    if (tracers) {
        for (const uint32_t call : {SYS_ptrace, SYS_wait4, SYS_waitid}) calls[call] = stop;
        calls[SYS_clone] = program.by_argument(0, CLONE_UNTRACED, CLONE_UNTRACED, stop, allow);
    }
    program.by_architecture(program.by_number(calls, allow), allow);
    return program.finish();
}

}  // namespace gpr
