// A process of the session as the worker sees it: its fragment and threads here.
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
#include "monitor/tracee/filter_notifier.h"
#include "monitor/tracee/memory_policy.h"
#include "monitor/tracee/signal_action.h"
#include "monitor/tracee/vdso_exit.h"
#include "monitor/tracee/waits.h"
#include "syscall/marshal.h"

namespace gpr {

class DelegatedFile;
class KnownLookups;
struct RemoteProcess;
namespace worker {
class WaitHere;
}  // namespace worker

// A signal that home has passed on, or (serial 0) that was raised here.
struct HandledSignal {
    siginfo_t info{};
    uint32_t serial = 0;
    bool own = false;  // sent by the thread itself, here: OwnSignals
};

// A signal that a thread may have sent to itself: OwnSignals.
struct OwnSignal {
    uint32_t call = 0;  // 0: none yet
    int signal = 0;
    pid_t process = 0, thread = 0;  // as the call names them
    std::optional<siginfo_t> info;  // what its handler was told; unknown: it is not known to be one
};

// The break of brk(2), while home lets this node move it: Breaks.
struct OwnBreak {
    uint64_t end = 0;        // 0: home moves it
    ObjectId object = 0;     // to which memory behind it may belong; 0: to none that exists
    unsigned asked = 0;      // calls of brk(2) that home has not answered
    uint64_t forgotten = 0;  // how often it has become home's again
};

struct RemoteThread {
    enum class Where : uint8_t {
        elsewhere,     // not here: the kernel thread is a shadow, parked in its stub
        leaving_stub,  // about to run the program
        running,
        held,  // stopped in a call, until home has made it
    };
    pid_t tid = 0;       // as the program sees it
    pid_t host_tid = 0;  // as this supervisor sees it
    RemoteProcess* process = nullptr;
    std::unique_ptr<StubThread> stub;
    std::optional<uint64_t> mask;          // its signal mask, if known
    std::optional<uint64_t> mask_at_home;  // what home takes for it, if known
    OwnSignal own_signal;
    std::optional<HandledSignal> passed;     // by home; this kernel is to deliver it
    std::optional<HandledSignal> beginning;  // its handler is about to start
    std::optional<VdsoExit> vdso_exit;       // a signal waits until it has left the vdso
    bool awaits_others = false;  // stopped at the handler until home has sent the other signals
    uint64_t notification = 0;   // of the forwarded call it waits in; 0: none
    std::unique_ptr<MarshalledCall> call;      // what was sent to home for it
    std::unique_ptr<OneShot<int64_t>> answer;  // for a call that a coroutine waits for
    std::vector<std::byte> answer_bytes;
    // Called when the answer arrives, in order with home's other messages.
    std::function<void(int64_t)> on_answer;
    std::optional<HandledSignal> answer_signal;  // to be delivered when home has answered
    OwnBreak offered_break;                      // by home's latest answer; without an end: none
    // Home has answered that the thread must come home to make the call.
    bool answered_elsewhere = false;
    // Registers of the call in whose place rt_sigsuspend was made; the program must see these.
    std::unique_ptr<user_regs_struct> borrowed;
    std::optional<HandledSignal> borrowed_for;  // to be delivered once it waits in rt_sigsuspend
    OneShot<WaitStatus>* awaited = nullptr;
    bool restarts_at_home = false;     // its latest interrupted call was made at home
    SuspendedCall suspended;           // that it was to repeat when it arrived
    std::vector<Address> waits_at;     // the words of its latest futex call that was reported
    Clock::time_point visits_until{};  // until then it may run home's code here
    user_regs_struct arrival_regs{};   // its registers when it arrived, if for a visit
    uint64_t exit_hold = 0;            // paging::Supply::hold of what the kernel writes at its end
    bool ending = false;               // only its last call remains to be made
    bool dying = false;  // stopped at a signal that ends the program: home has been told
    bool alt_stack_changed = false;  // since home was told
    uint64_t waited_ns = 0;          // for answers of home, since home was told
    uint32_t stopped_calls = 0;      // that its supervisor looked at, since home was told
    // Calls made at home without an answer, since the last answer.
    uint32_t unanswered = 0;
    CpuModes cpu_modes;          // of the kernel thread here
    CpuMask affinity;            // empty: the program has set none
    MemoryPolicy memory_policy;  // likewise
    Gravity gravity;
    Address left_at{};  // the page of missing code for which it left last
    // CLONE_CHILD_CLEARTID address, which the kernel here clears.
    uint64_t clear_tid = 0;
    std::vector<uint64_t> robust_locks;  // their waiters must be woken when it has ended
    FilterList filters;                  // its own, which the executor does not have

    [[nodiscard]] Where where() const { return where_; }
    [[nodiscard]] bool here() const { return where_ != Where::elsewhere; }
    void now_is(Where where) {
        // A thread arrives by way of its stub.
        GPR_ASSERT(here() || where == Where::leaving_stub || where == Where::elsewhere);
        where_ = where;
    }

private:
    Where where_ = Where::elsewhere;
};

// Descriptor numbers of home that are known to be closed: ClosedNumbers.
struct ClosedRange {
    uint64_t first = 0, end = 0;
    uint64_t forgotten = 0;   // how often the range has been forgotten
    unsigned bad_closes = 0;  // consecutive closes of numbers that are not open
    bool never = false;       // something may open files without a call that we see
};

// An upper bound for the processes and threads that a process of the program has here at its start:
// its main thread, page mover, executor and waker.
inline constexpr uint64_t tasks_of_process = 5;

struct RemoteProcess {
    pid_t pid = 0;
    pid_t host_pid = 0;
    Fd pidfd;
    std::shared_ptr<Fragment> fragment;
    std::shared_ptr<FilterNotifier> notifier;                          // a fork shares its parent's
    std::unordered_map<pid_t, std::unique_ptr<RemoteThread>> threads;  // by tid
    // Host tids of its living tasks, helpers included, by their ids in the process.
    std::map<pid_t, pid_t> host_tids;
    pid_t page_mover_host_tid = 0;
    pid_t executor_host_tid = 0;
    pid_t waker_host_tid = 0;
    int alive = 0;
    enum class Life : uint8_t {
        copied,  // a fork whose memory is not registered yet
        alive,
        ending,
    };
    Life life = Life::alive;
    std::string end_reason;            // why it ended, if home had not asked for it
    uint64_t end_hold = 0;             // paging::Supply::hold of its threads' robust futexes
    bool halted = false;               // by job control at home: no thread may run
    std::vector<pid_t> halted_tids;    // host tids that are stopped because of it
    bool goes_home = false;            // its threads go home as soon as they stop
    bool debugged = false;             // home hears of signals before a handler runs
    bool frozen = false;               // for a fork: no thread may run
    std::vector<pid_t> stopped;        // host tids that are stopped because of it
    RemoteProcess* newborn = nullptr;  // the fork of its memory that is about to be born
    // How many barriers have come for the fork that has begun: forkBarrier in transport/gpr.capnp.
    int fork_barriers = 0;
    std::unique_ptr<AsyncMutex> forking;
    // Guard of `forking`, while a thread at home forks.
    std::unique_ptr<AsyncMutex::Guard> home_forks;
    uint32_t home_freeze = 0;               // number of home's freeze; 0: none
    std::shared_ptr<ChangeWindow> changes;  // of its mappings, made here
    Usage used;
    // For signals that faults caused by gpr raise: Growth.
    std::map<int, SignalAction> fault_actions;
    // Bits of the signals with a handler that is known to be without SA_RESETHAND.
    uint64_t lasting_handlers = 0;
    bool has_timers = false;           // on CPU-time clocks, made here
    bool timers_told = false;          // home knows of them, or of interval timers
    std::set<int> timers_named_by_id;  // made without a sigevent, so si_value is their id
    uint64_t pending_timers = 0;       // signals left to the next image: bit n-1 is signal n
    unsigned fd_base = 0;              // first of its descriptors here; 0: it has none
    unsigned fd_last = INT32_MAX;      // and the last
    struct Epoll {
        int fd = -1;                  // in the process
        std::shared_ptr<Fd> watched;  // our copy of it
    };
    // Waits of its threads for descriptors of both nodes.
    std::shared_ptr<std::set<worker::WaitHere*>> waits_here =
        std::make_shared<std::set<worker::WaitHere*>>();
    std::map<int, Epoll> epolls;  // what epoll descriptors of home watch here, by their number
    // Names, by number: monitor/home/fd_names.h.
    struct Name {
        uint64_t file = 0;  // its number, for home and Names
        bool here = false;  // in the descriptor table here
    };
    std::map<int, Name> names;
    std::set<int> former_names;  // still in the descriptor table here
    // Files of this node that its parent had mapped and that it may map again: Mapping::source.
    std::vector<std::shared_ptr<Fd>> sources;
    std::unique_ptr<AsyncMutex> naming;  // held while the descriptor table changes
    ClosedRange closed;
    std::shared_ptr<OwnBreak> own_break = std::make_shared<OwnBreak>();
    std::map<int, std::shared_ptr<DelegatedFile>> delegated;  // by descriptor: Delegations
    std::shared_ptr<KnownLookups> lookups;                    // null: none
    bool mixed = false;                                       // program code runs at home, too
    // RLIMIT_AS or _DATA is set: home decides whether there may be more.
    bool limits_memory = false;
    bool gravity = false;               // threads go home by gravity
    bool has_jumped_into_stub = false;  // it made calls from the stub's page without our order

    // Whether its threads are to stop once they run.
    [[nodiscard]] bool stops() const { return frozen || halted || goes_home; }
    // 0: it is gone.
    [[nodiscard]] pid_t host_tid_of(pid_t task) const {
        auto it = host_tids.find(task);
        return it == host_tids.end() ? 0 : it->second;
    }
};

// Whether a descriptor of the program is one of this host.
inline bool has_fd_here(const RemoteProcess& process, uint64_t fd) {
    auto number = static_cast<uint32_t>(fd);
    if (process.fd_base == 0 || number > INT32_MAX) return false;
    bool in_range = number >= process.fd_base && number <= process.fd_last;
    return in_range || process.names.contains(static_cast<int>(number));
}

}  // namespace gpr
