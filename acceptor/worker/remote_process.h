// A process of the session as the worker sees it: the fragment here and the threads in it.
#pragma once

#include <signal.h>
#include <sys/user.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "monitor/node/change_window.h"
#include "monitor/node/program_filter.h"
#include "monitor/node/usage.h"
#include "monitor/paging/fragment.h"
#include "monitor/rules/gravity.h"
#include "monitor/tracee/cpu_mask.h"
#include "monitor/tracee/cpu_modes.h"
#include "monitor/tracee/memory_policy.h"
#include "monitor/tracee/notifier.h"
#include "monitor/tracee/signal_action.h"
#include "monitor/tracee/waits.h"
#include "syscall/marshal.h"

namespace gpr {

struct RemoteProcess;

// One that home passed on, or (serial 0) that was caused here.
struct HandledSignal {
    siginfo_t info{};
    uint32_t serial = 0;
};

struct RemoteThread {
    enum class Where : uint8_t {
        elsewhere,     // the kernel thread here is a shadow, parked in its stub
        leaving_stub,  // about to run the program
        running,
        held,  // stopped by the call it made, until that is done
    };
    pid_t tid = 0;       // what the program knows
    pid_t host_tid = 0;  // for this supervisor
    RemoteProcess* process = nullptr;
    std::unique_ptr<StubThread> stub;
    std::optional<uint64_t> mask;            // its signal mask, if known
    std::optional<HandledSignal> passed;     // by home; the kernel here is to deliver it
    std::optional<HandledSignal> beginning;  // its handler: the thread is about to stand there
    bool awaits_others = false;  // it stands there until home has sent what comes before it
    uint64_t notification = 0;   // of the forwarded call it waits in; 0: none
    std::unique_ptr<MarshalledCall> call;      // what was sent for it
    std::unique_ptr<OneShot<int64_t>> answer;  // for calls that a coroutine waits for
    std::vector<std::byte> answer_bytes;
    // Of the answer that it waits for, when that comes: in order with what else home says.
    std::function<void(int64_t)> on_answer;
    std::optional<HandledSignal> answer_signal;  // that comes once home has answered
    bool answered_elsewhere = false;             // it said that the thread is to come home for it
    // Registers that rt_sigsuspend, made in the name of another call, must not be seen to change.
    std::unique_ptr<user_regs_struct> borrowed;
    std::optional<HandledSignal> borrowed_for;  // delivered once it waits
    OneShot<WaitStatus>* awaited = nullptr;
    bool restarts_at_home = false;     // the call it was interrupted in last was home's
    Address waits_at{};                // the word in shared memory that its last call here was on
    Clock::time_point visits_until{};  // till then it may run home's code here
    user_regs_struct came_with{};      // the registers with which it came last, if for a visit
    uint64_t exit_hold = 0;            // paging::Supply::hold of what the kernel writes at its end
    bool ending = false;               // nothing but its last call is left of it
    bool alt_stack_changed = false;    // since home was told
    uint32_t unanswered = 0;           // calls that home makes without an answer, since the last
    CpuModes cpu_modes;                // that the kernel thread here has
    CpuMask affinity;                  // if the program has set it
    MemoryPolicy memory_policy;        // the same
    Gravity gravity;
    Address left_at{};                   // the page of code whose absence sent it home last
    uint64_t clear_tid = 0;              // CLONE_CHILD_CLEARTID: what the kernel clears at its end
    std::vector<uint64_t> robust_locks;  // that its end hands on to who waits for them
    FilterList filters;                  // of the program, that it is under and the executor is not

    [[nodiscard]] Where where() const { return where_; }
    [[nodiscard]] bool here() const { return where_ != Where::elsewhere; }
    void now_is(Where where) {
        // Who comes does so by the stub.
        GPR_ASSERT(here() || where == Where::leaving_stub || where == Where::elsewhere);
        where_ = where;
    }

private:
    Where where_ = Where::elsewhere;
};

// Numbers of descriptors of home that are known to be closed: ClosedNumbers.
struct ClosedRange {
    uint64_t first = 0, end = 0;
    uint64_t forgotten = 0;   // how often
    unsigned bad_closes = 0;  // of numbers that are not open, and nothing else since
    bool never = false;       // something of the process may open files by itself
};

// Processes and threads that one of the program's processes is here when it begins: its own, the
// zygote, puncher, executor and waker.
inline constexpr uint64_t tasks_of_process = 5;

struct RemoteProcess {
    pid_t pid = 0;
    pid_t host_pid = 0;
    Fd pidfd;
    std::shared_ptr<Fragment> fragment;
    std::shared_ptr<Notifier> notifier;                                // forks have their parent's
    std::unordered_map<pid_t, std::unique_ptr<RemoteThread>> threads;  // by tid
    // Its tasks that live, helpers too: host tids by what the process calls them.
    std::map<pid_t, pid_t> host_tids;
    pid_t puncher_host_tid = 0;
    pid_t executor_host_tid = 0;
    pid_t waker_host_tid = 0;
    int alive = 0;
    enum class Life : uint8_t {
        copied,  // of a fork, and not watched yet
        alive,
        ending,
    };
    Life life = Life::alive;
    std::string end_reason;            // why it ended, if home did not ask for it
    bool halted = false;               // by job control at home: no thread may run
    std::vector<pid_t> halted_tids;    // host tids that stand still because of it
    bool recalled = false;             // its threads go home as soon as they stop
    bool frozen = false;               // for a fork: no thread may run
    std::vector<pid_t> stopped;        // host tids that stand still because of it
    RemoteProcess* newborn = nullptr;  // a fork of its memory is about to be born
    int fork_barriers = 0;             // of the two that begin a fork, see transport/gpr.capnp
    std::unique_ptr<AsyncMutex> forking;
    std::unique_ptr<AsyncMutex::Guard> home_forks;  // of forking, while a thread at home is in one
    uint32_t home_freeze = 0;                       // home asks for this one; 0: for none
    std::shared_ptr<ChangeWindow> changes;          // of its mappings, made here
    Usage used;
    std::map<int, SignalAction> fault_actions;  // of signals that faults of ours raise: Growth
    bool has_timers = false;                    // on CPU-time clocks, made here
    std::set<int> timers_named_by_id;           // si_value is their id: created without a sigevent
    uint64_t pending_timers = 0;   // a set of signals that its image leaves to the next one
    unsigned fd_base = 0;          // its descriptors here begin with this number; 0: it has none
    unsigned fd_last = INT32_MAX;  // and end with this one
    struct Epoll {
        int fd = -1;                  // of the program, here
        std::shared_ptr<Fd> watched;  // the same, ours
    };
    std::map<int, Epoll> epolls;  // what epoll descriptors of home watch here, by their number
    // Numbers of home that are names of files here: monitor/home/fd_names.h.
    struct Name {
        uint64_t file = 0;  // as home and Names know it
        bool here = false;  // in the table here
    };
    std::map<int, Name> names;
    std::set<int> former_names;  // that the table here has still
    // Files of ours that its parent had mapped, and that it may show again: Mapping::source.
    std::vector<std::shared_ptr<Fd>> sources;
    std::unique_ptr<AsyncMutex> naming;  // held while the table changes
    ClosedRange closed;
    bool mixed = false;          // program code runs at home as well
    bool limits_memory = false;  // RLIMIT_AS or _DATA: home says whether there may be more
    bool gravity = false;        // and threads go there for the calls they make
    bool plays_stub = false;     // it made calls from the stub's page that we gave no order for
};

// Whether a descriptor of the program is one of this host.
inline bool has_fd_here(const RemoteProcess& process, uint64_t fd) {
    auto number = static_cast<uint32_t>(fd);
    if (process.fd_base == 0 || number > INT32_MAX) return false;
    bool in_range = number >= process.fd_base && number <= process.fd_last;
    return in_range || process.names.contains(static_cast<int>(number));
}

}  // namespace gpr
