// A process of the session as the monitor sees it, and its threads at home.
#pragma once

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
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
#include "monitor/rules/resting_load.h"
#include "monitor/tracee/cpu_mask.h"
#include "monitor/tracee/cpu_modes.h"
#include "monitor/tracee/cpu_timers.h"
#include "monitor/tracee/files_limit.h"
#include "monitor/tracee/interval_timer.h"
#include "monitor/tracee/memory_policy.h"
#include "monitor/tracee/requeued_signals.h"
#include "monitor/tracee/resumed_wait.h"
#include "monitor/tracee/rseq_area.h"
#include "monitor/tracee/signal_action.h"
#include "monitor/tracee/waits.h"

namespace gpr {

struct HomeProcess;

namespace home {
class DebuggedProcess;
}  // namespace home

// A thread at home that is in a fork. A signal may make it repeat the call.
struct ForkAtHome {
    uint64_t number = 0;  // 0: not in a fork
    bool begun = false;   // paging::Forks::begin_fork() has been called
    bool ready = false;   // and has ended
};

// A signal that was taken out of home's kernel for a thread at an acceptor.
struct PassedSignal {
    siginfo_t info{};
    uint32_t serial = 0;
    uint64_t mask = 0;         // the thread's own mask; its shadow blocks everything meanwhile
    bool with_answer = false;  // it is sent with the result of the thread's call
};

// A call that the monitor makes for a thread: proxy_calls.h.
struct ProxyCall {
    explicit ProxyCall(Scheduler& scheduler) : over(scheduler) {}
    uint32_t number = 0;
    std::optional<int64_t> result;  // nullopt: not made; the thread may repeat it
    OneShot<bool> over;
    bool holds_stop = false;  // the thread has stopped in it, and waits for its end
};

// What one acceptor has been told of a thread.
struct Twin {
    size_t filters = 0;  // how many of the thread's filters
    CpuModes cpu_modes;
    bool alt_stack_changed = true;  // since it was told
    bool affinity_told = false;
    bool policy_told = true;  // set_mempolicy(2)
};

// What a thread has done so far.
struct ThreadCounts {
    uint64_t departures = 0, arrivals = 0;  // to an acceptor, and back
    uint64_t calls = 0;                     // made here for it while it was there
    Clock::time_point call_since{};         // when the last one came
    uint64_t served_ns = 0;                 // what the last one took here
    uint64_t on_way_ns = 0;                 // what all but the last one took beside that
    uint64_t stopped = 0;                   // by calls at an acceptor, whoever made them

    // The thread has waited so long at the acceptor for what was served last.
    void note_waited(uint64_t ns) {
        on_way_ns += ns - std::min(ns, served_ns);
        served_ns = 0;
    }
};

struct HomeThread {
    // How far it is towards its end.
    enum class Life : uint8_t {
        runs,
        made_last_call,  // at an acceptor
        ending,          // executes no more instructions
        end_told,        // the acceptors know that it has ended
    };
    // What it is doing; one thing at a time.
    enum class Business : uint8_t {
        none,
        call,       // the shadow makes a forwarded call
        departure,  // it is at the acceptor as soon as its crossing has been sent
        visit,      // it came for shared memory that others use: visits.h
    };
    pid_t tid = 0;
    HomeProcess* process = nullptr;
    std::shared_ptr<StubThread> stub;  // null while it is an ordinary thread of a native process
    bool helper = false;               // page mover, executor or waker
    NodeId node = directory_node;      // where it runs; the kernel thread here may be its shadow
    bool stop_met = false;             // by SIGSTOP, but it had to go on: Signals::stop_after_all()
    ThreadCounts counts;
    ForkAtHome fork;
    FilterList filters;              // the program's filters that the kernel thread here has
    bool filtered_apart = false;     // it also has one that gpr did not install
    std::vector<Twin> twins;         // by node: twin()
    uint64_t futex_waits = 0;        // of a vfork child: how many futex calls it has made
    Clock::time_point call_began{};  // of the latest forwarded call
    // That call, which is made again after an interruption.
    std::optional<ResumedWait> resumed_wait;
    uint32_t wait = 0;          // the number by which the acceptor may interrupt that call
    bool interrupted = false;   // the acceptor has done so
    bool repeatable = false;    // the call may be repeated after a signal handler
    bool wants_device = false;  // on a visit it touched memory that only the acceptor may use
    std::optional<PassedSignal> passed;  // until the acceptor says what became of it
    uint32_t signals_passed = 0;
    RequeuedSignals requeued;
    CpuModes cpu_modes;
    NodeId last_away = 1;  // the acceptor where it was last; gravity leads there
    Usage used_before;     // at acceptors, before it came home to rest
    bool masked = false;   // the shadow blocks more than the program: signals are postponed
    Clock::time_point visits_until{};  // until then it may run the acceptor's code here
    Gravity gravity;
    struct PinWait {
        Address page{};
        Clock::time_point until{}, last{};
    };
    // A system call here waits for a page that a device has pinned.
    std::optional<PinWait> pin_wait;
    // CLONE_CHILD_CLEARTID address for the child of its current clone.
    uint64_t clears_childs_tid = 0;
    uint64_t exit_hold = 0;  // paging::Supply::hold() on what the kernel writes at its end
    std::vector<uint64_t> robust_locks;  // their waiters must be woken when it has ended
    Address left_at{};                   // the page of missing code for which it left last
    // CLONE_CHILD_CLEARTID address, if home's kernel clears it.
    uint64_t clear_tid = 0;
    bool blocks_trap = false;                // whether it blocks SIGTRAP, as far as is known
    OneShot<WaitStatus>* awaited = nullptr;  // somebody waits for its next stop
    std::shared_ptr<ProxyCall> proxy_call;
    MemoryPolicy memory_policy;  // as set at an acceptor, or before it was attached
    RseqArea rseq;               // as the program has registered it
    SuspendedCall suspended;     // that it was to repeat when it went on here
    // In a process that comes home: it has arrived, and shall continue with this.
    std::unique_ptr<ThreadContext> goes_on_with;
    uint64_t timed_wait = 0;  // the call with a timeout that its shadow was in, since call_began
    CpuMask affinity;         // empty: the program has set none
    // As inherited in this kernel, for a new process that is not split yet.
    CpuMask affinity_at_birth;

    [[nodiscard]] bool remote() const { return node != directory_node; }
    [[nodiscard]] Life life() const { return life_; }
    [[nodiscard]] bool ends() const { return life_ >= Life::ending; }
    // Only ever goes forward.
    void advance(Life life) { life_ = std::max(life_, life); }
    [[nodiscard]] bool is_in(Business business) const { return business_ == business; }
    void begin(Business business) {
        GPR_ASSERT(business_ == Business::none);
        business_ = business;
    }
    void end(Business business) {
        if (business_ == business) business_ = Business::none;
    }
    // It is the only thread of a new image.
    void begin_image() {
        life_ = Life::runs;
        business_ = Business::none;
    }
    [[nodiscard]] Twin& twin(NodeId acceptor) { return twins.at(acceptor - 1u); }
    // known_at: the acceptor that knows already, if any.
    void note_alt_stack_changed(NodeId known_at = directory_node) {
        for (size_t i = 0; i < twins.size(); i++) twins[i].alt_stack_changed = i + 1 != known_at;
    }
    void note_affinity_told() {
        for (Twin& each : twins) each.affinity_told = true;
    }
    void note_affinity(CpuMask mask, NodeId known_at = directory_node) {
        affinity = std::move(mask);
        for (size_t i = 0; i < twins.size(); i++) twins[i].affinity_told = i + 1 == known_at;
    }
    void note_policy_told() {
        for (Twin& each : twins) each.policy_told = true;
    }
    void note_memory_policy(MemoryPolicy policy, NodeId known_at = directory_node) {
        memory_policy = std::move(policy);
        for (size_t i = 0; i < twins.size(); i++) {
            twins[i].policy_told = memory_policy.empty() || i + 1 == known_at;
        }
    }

private:
    Life life_ = Life::runs;
    Business business_ = Business::none;
};

struct FileSize {
    std::shared_ptr<Fd> file;
    uint64_t size = 0;  // bytes
};

// A file that has been replaced by a copy in memory, as /proc/PID/maps would show it.
struct CopiedFile {
    std::string path;
    uint64_t device = 0, inode = 0;
};

// A copy of a file that a process has inherited from its parent.
struct InheritedCopy {
    Range range;
    std::shared_ptr<Fd> content;
    uint64_t content_offset = 0;
    CopiedFile file;
    // Whether it is code that runs at an acceptor once the process is split.
    bool trapped = false;
    NodeId code_node = directory_node;  // where that code runs
    uint32_t source = 0;                // instead of `content`: Mapping::source
};

// Code with breakpoints that a child has inherited from its parent.
struct InheritedFunctions {
    Range range;
    std::shared_ptr<const ChosenFunctions> functions;
    std::shared_ptr<Fd> content;
    uint64_t content_offset = 0;
};

// What the child of a fork in place begins with (forks_in_place.h).
struct ForkedMemory {
    AddressSpace space;
    std::map<ObjectId, CopiedFile> copied_files;
    std::string executable;
    uint64_t break_begin = 0, break_end = 0;
    Address tid_at{}, clear_tid_at{};  // 0: no CLONE_CHILD_SETTID, _CLEARTID
    bool ready = false;                // the mappings refer to the child's own objects
};

// A child that a thread at an acceptor has asked for, until it is born.
struct Birth {
    ThreadContext context;
    bool shares_memory = false;
    uint64_t exit_signal = 0;
    uint64_t clear_tid = 0;                // CLONE_CHILD_CLEARTID address, or 0
    std::shared_ptr<ForkedMemory> memory;  // for a fork in place
};

// What is known of a process that rests, to decide when it is split.
struct Rest {
    uint64_t number = 0;  // counts the rests of the session
    uint64_t looks = 0;   // how many were planned
    // At the last look: CPU time, and calls that read or write, as far as the kernel counts them.
    uint64_t total_ns = 0, user_ns = 0, transfers = 0;
    uint64_t computed_ns = 0;  // CPU time, while it did little else
    Clock::time_point looked_at{}, asked_sharers_at{};
    RestingLoad load;  // between the last two looks
    std::chrono::milliseconds pause{};
    bool being_split = false;
    bool waits_for_others = false;  // others are being split, and may take it along
    bool settles = false;           // it returns to rest: its calls are gpr's
    // What threads have just opened here, although it is an acceptor's: descriptors, by thread.
    std::map<pid_t, int> opened;
};

// What being at an acceptor has cost a process that may return to rest: returns.h.
struct Stay {
    Clock::time_point began{}, looked_at{}, stays_until{};
    uint64_t pages = 0;  // that it had here when it went
    // Of its threads (ThreadCounts), at the last look.
    uint64_t calls = 0, on_way_ns = 0, stopped = 0;
    double lost_ns = 0;     // by calls, beyond what they may cost
    double balance_ns = 0;  // of that, between the last two looks; may be negative
    bool returning = false;
};

struct HomeProcess {
    enum class State {
        native,     // not split (yet): a child, or one that rests or stays at home
        preparing,  // the stub is being installed
        split,      // it has a fragment here and one at each acceptor
        ending,
    };

    pid_t pid = 0;
    State state = State::native;
    HomeProcess* shares_memory_with =
        nullptr;  // a vfork child's parent, until it execs; may be gone
    std::weak_ptr<Fragment> memory_of_parent;  // a vfork child's memory, if its parent is split
    // Children that share its memory and run at the same time.
    bool has_vfork_children = false;
    std::shared_ptr<Fragment> fragment;
    // Of the filter that reports its calls; null: it has only resting_filter.h, which stops a few.
    std::shared_ptr<Fd> listener;
    std::shared_ptr<ForkedMemory> inherits;  // until it has a fragment that shows it
    std::unordered_map<pid_t, HomeThread*> threads;
    int mailbox_asked_for = -1;   // our descriptor, while it may ask for a copy
    Address syscall_instruction;  // for injecting calls before the stub is installed
    std::string executable;       // path of the program's file
    std::map<ObjectId, CopiedFile> copied_files;
    std::vector<InheritedCopy> inherited;  // until it is split
    std::vector<InheritedFunctions> inherited_functions;
    Address stack_used{};  // how far down the main stack had been used when last examined
    // Mappings that grow, until it is split; the bool: it is the main stack.
    std::vector<std::pair<Range, bool>> inherited_growing;
    // Attributes of mappings that /proc/PID/maps does not show, until it is split.
    AddressSpace marked;
    // Likewise of mbind(2).
    std::vector<std::pair<Range, MemoryPolicy>> mapping_policies;
    std::vector<std::shared_ptr<ChangeWindow>> changes;  // of changes made here; by acceptor
    ino_t ipc_at_birth = 0;    // the IPC namespace that its parent had then
    uint64_t break_begin = 0;  // brk: start of the heap
    uint64_t break_end = 0;
    // Bit n-1: the program may have a handler for signal n. If it is clear, there is none.
    uint64_t caught_signals = 0;
    uint64_t restarting_signals = 0;  // those whose handler has SA_RESTART
    // SA_RESETHAND, by signal: the action that remains once the handler has started.
    std::map<int, std::array<uint64_t, 4>> one_shot_actions;
    std::array<uint64_t, 4> trap_action{};  // for SIGTRAP, which a breakpoint may reset
    // For signals that faults caused by gpr raise: Growth.
    std::map<int, SignalAction> fault_actions;
    uint64_t blocking_trap = 0;  // signals whose handlers run with SIGTRAP blocked
    // Signals whose handler home's kernel has yet to reset.
    uint64_t to_reset = 0;
    std::unique_ptr<AsyncMutex> actions;  // held while home's kernel is told of a disposition
    std::map<int, rlimit> memory_limits;  // by resource, as the program has set them
    FilesLimit files_limit;               // as it was before the session
    bool started_remotely = false;
    bool has_had_children = false;       // since its exec
    bool watches_interruptions = false;  // silent_interruptions.h
    // fd_names.h: the names that acceptors know, by number; and the numbers that filters watch.
    std::map<int, uint64_t> names_told;
    std::set<int> names_watched;
    // The acceptor whose files its calls here have used last; directory_node: none.
    NodeId uses_files_of = directory_node;
    bool stops_waits = false;            // filters stop its waits for children: trace_waits.h
    bool cannot_be_traced = false;       // it could not come home for that
    std::map<int, NodeId> epolls_there;  // epoll descriptors that also watch files of that acceptor
    size_t common_filters = 0;           // how many filters all threads have, at the acceptors too
    int forks = 0;  // threads here that are in a fork; meanwhile none runs at an acceptor
    std::set<NodeId> frozen_at;  // acceptors that have stopped its threads
    uint32_t freezes = 0;        // how often that was asked for
    bool new_image = false;      // it has called exec, not only been born
    bool has_rested = false;     // since then
    bool executing = false;      // an exec is under way: threads that end are its doing
    bool group_exit = false;     // exit_group is under way: all threads end
    bool finished = false;       // its last moment has passed: Ends::finish()
    bool doomed = false;         // it is being made to end with status 125
    bool stopped = false;        // by job control, on all nodes
    // Used at acceptors:
    Usage used_by_images;                   // by images of this process that have ended
    Usage used_by_ending;                   // by an image that not all acceptors have reported yet
    NodeId ended_at = 0;                    // how many have reported it
    Usage used_by_children;                 // by children that it has waited for, and theirs
    std::map<pid_t, Usage> ended_children;  // by children that it has not waited for
    CpuTimers cpu_timers;
    std::vector<IntervalTimer> timers_taken;  // that it had at rest, until it is split
    bool has_timers_away = false;             // an acceptor's kernel has some as well, or had
    uint64_t cpu_timers_turn = 0;             // identifies the coroutine that runs them
    // Timer signals that were pending at acceptors at exec: bit n-1 is signal n.
    uint64_t pending_timers = 0;
    bool is_root = false;
    std::unique_ptr<Rest> rest;  // while it rests: resting.h
    std::unique_ptr<Stay> stay;  // while it is split, and may rest again
    unsigned returns = 0;        // to rest, since its program began
    bool comes_home = false;     // all of it comes home: homecoming.h
    pid_t dumped_for = 0;        // the thread whose signal it dies of: core_dumps.h
    std::shared_ptr<home::DebuggedProcess> debugged;  // null: no debugger, no inherited breakpoints
    bool is_reaper = false;                           // gets orphans: PR_SET_CHILD_SUBREAPER
    bool stays_home = false;  // in namespaces of its own, or resting.h could not split it
    int ends_begun = 0;       // threads that fetch what the kernel uses at their end

    // To memory that it shares, it is like a process outside of the session: external_sharers.h.
    [[nodiscard]] bool runs_apart() const { return rest || stays_home; }
    // Whether it is an unsplit child, or rests, and nothing prevents splitting it.
    [[nodiscard]] bool can_be_split() const {
        return state == State::native && !shares_memory_with && !stays_home && !doomed &&
               (rest || (!is_root && threads.size() == 1));
    }
};

}  // namespace gpr
