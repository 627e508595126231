// A process of the session, as the monitor sees it, and its threads at home.
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
#include "monitor/tracee/cpu_mask.h"
#include "monitor/tracee/cpu_modes.h"
#include "monitor/tracee/cpu_timers.h"
#include "monitor/tracee/memory_policy.h"
#include "monitor/tracee/requeued_signals.h"
#include "monitor/tracee/resumed_wait.h"
#include "monitor/tracee/rseq_area.h"
#include "monitor/tracee/signal_action.h"
#include "monitor/tracee/waits.h"

namespace gpr {

struct HomeProcess;

// A thread at home that is in a fork. A signal may make it call again.
struct ForkAtHome {
    uint64_t number = 0;  // 0: it is in none
    bool begun = false;   // paging::Forks::begin_fork() has been called,
    bool ready = false;   // and is done
};

// A signal that was taken from the kernel here for a thread at the acceptor.
struct PassedSignal {
    siginfo_t info{};
    uint32_t serial = 0;
    uint64_t mask = 0;         // the thread's own; its shadow takes nothing else meanwhile
    bool with_answer = false;  // it goes to the acceptor with the answer of the thread's call
};

// A call of this thread that another one makes. It may be interrupted, the call is not.
struct CallInItsStead {
    explicit CallInItsStead(Scheduler& scheduler) : over(scheduler) {}
    uint32_t number = 0;
    std::optional<int64_t> result;  // nothing: it has not been made, and the thread may call again
    OneShot<bool> over;
};

// What the thread's counterpart at one acceptor was told of it.
struct Twin {
    size_t filters = 0;  // of the program's, that it is under
    CpuModes cpu_modes;
    bool alt_stack_changed = true;  // since
    bool affinity_told = false;
};

// What a thread has done so far.
struct ThreadCounts {
    uint64_t departures = 0, arrivals = 0;  // to an acceptor, and back
    uint64_t calls = 0;                     // made here for it while it was there
    Clock::time_point call_since{};         // when the last one came
};

struct HomeThread {
    // How far its end has come.
    enum class Life : uint8_t {
        runs,
        made_last_call,  // at an acceptor
        ending,          // past its last instruction
        end_told,        // the acceptors know that it has ended
    };
    // What it is in the middle of, which is one thing at a time.
    enum class Business : uint8_t {
        none,
        call,       // the shadow runs a forwarded one
        departure,  // it is at the acceptor as soon as its crossing has been sent
        visit,      // it came for shared memory that others use: visits.h
    };
    pid_t tid = 0;
    HomeProcess* process = nullptr;
    std::shared_ptr<StubThread> stub;  // null while it is an ordinary thread of a native process
    bool helper = false;               // puncher or executor
    NodeId node = directory_node;      // where it runs; the kernel thread here may be its shadow
    bool stop_met = false;             // by SIGSTOP, where it had to go on: see stop_after_all()
    ThreadCounts counts;
    ForkAtHome fork;
    FilterList filters;              // of the program, that the kernel thread here is under
    std::vector<Twin> twins;         // at the acceptors, by node: twin()
    uint64_t futex_waits = 0;        // calls of futexes so far, of one that has others' memory
    Clock::time_point call_began{};  // the last one
    std::optional<ResumedWait> resumed_wait;  // its call, which went on after an interruption
    uint32_t wait = 0;          // the name of that call for the acceptor that may interrupt it
    bool interrupted = false;   // it has
    bool repeatable = false;    // which can be made again, after a handler
    bool wants_device = false;  // on a visit it met memory that only the acceptor may use
    std::optional<PassedSignal> passed;  // till the acceptor says what became of it
    uint32_t signals_passed = 0;
    RequeuedSignals requeued;
    // In a mixed session:
    CpuModes cpu_modes;
    NodeId last_away = 1;  // the acceptor where it was last: gravity leads there
    bool masked = false;   // the shadow's mask is not the program's: signals are postponed
    Clock::time_point visits_until{};  // till then it may run the acceptor's code here
    Gravity gravity;
    struct PinWait {
        Address page{};
        Clock::time_point until{}, last{};
    };
    std::optional<PinWait> pin_wait;  // in a system call, for a page that a device has
    uint64_t clears_childs_tid = 0;   // the same for the child of the clone it is in
    uint64_t exit_hold = 0;           // paging::Supply::hold of what the kernel writes at its end
    std::vector<uint64_t> robust_locks;      // that its end hands on to who waits for them
    Address left_at{};                       // the page of code whose absence sent it away last
    uint64_t clear_tid = 0;                  // CLONE_CHILD_CLEARTID, where the kernel here does it
    bool blocks_trap = false;                // SIGTRAP, as far as it is known
    OneShot<WaitStatus>* awaited = nullptr;  // who waits for the next stop
    std::shared_ptr<CallInItsStead> in_its_stead;
    MemoryPolicy memory_policy;  // that it has set at the acceptor
    RseqArea rseq;               // in a session that was attached
    // Of a process that is being detached: it has come home, and goes on like this.
    std::unique_ptr<ThreadContext> goes_on_with;
    uint64_t timed_wait = 0;    // the call with a time limit that its kernel thread here was in
    CpuMask affinity;           // if the program has set it
    CpuMask affinity_at_birth;  // the kernel's here, of what begins as a process; until it is split

    [[nodiscard]] bool remote() const { return node != directory_node; }
    [[nodiscard]] Life life() const { return life_; }
    [[nodiscard]] bool ends() const { return life_ >= Life::ending; }
    // It never goes back.
    void advance(Life life) { life_ = std::max(life_, life); }
    [[nodiscard]] bool is_in(Business business) const { return business_ == business; }
    void begin(Business business) {
        GPR_ASSERT(business_ == Business::none);
        business_ = business;
    }
    void end(Business business) {
        if (business_ == business) business_ = Business::none;
    }
    // It is the one thread of a new image.
    void begin_image() {
        life_ = Life::runs;
        business_ = Business::none;
    }
    [[nodiscard]] Twin& twin(NodeId acceptor) { return twins.at(acceptor - 1u); }
    // known_at: where that was done, if at an acceptor.
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

private:
    Life life_ = Life::runs;
    Business business_ = Business::none;
};

struct FileSize {
    std::shared_ptr<Fd> file;
    uint64_t size = 0;  // bytes
};

// A file of which a copy stands in memory, as the kernel's list of mappings would name it.
struct CopiedFile {
    std::string path;
    uint64_t device = 0, inode = 0;
};

// One that a process has from its parent.
struct InheritedCopy {
    Range range;
    std::shared_ptr<Fd> content;
    uint64_t content_offset = 0;
    CopiedFile file;
    bool trapped = false;               // code that runs at an acceptor, once the process is split,
    NodeId code_node = directory_node;  // and at which
    uint32_t source = 0;                // instead of content: Mapping::source
};

// Code with breakpoints in it that a child has from its parent.
struct InheritedFunctions {
    Range range;
    std::shared_ptr<const ChosenFunctions> functions;
    std::shared_ptr<Fd> content;
    uint64_t content_offset = 0;
};

// What the child of a fork begins with whose memory stays where it is.
struct ForkedMemory {
    AddressSpace space;
    std::map<ObjectId, CopiedFile> copied_files;
    std::string executable;
    uint64_t break_begin = 0, break_end = 0;
    Address tid_at{}, clear_tid_at{};  // 0: CLONE_CHILD_SETTID, _CLEARTID are not asked for
    bool ready = false;                // the mappings are the child's own, not its parent's
};

// A child that a thread at the acceptor asked for, until it is born.
struct Birth {
    ThreadContext context;
    bool shares_memory = false;
    uint64_t exit_signal = 0;
    uint64_t clear_tid = 0;                // CLONE_CHILD_CLEARTID, if so
    std::shared_ptr<ForkedMemory> memory;  // of a fork whose memory stays where it is
};

// What is known of a process that rests, and decides when it has done so for long enough.
struct Rest {
    // When it was last looked at: of the CPU, and calls that read or write, as far as the kernel
    // counts.
    uint64_t total_ns = 0, user_ns = 0, transfers = 0;
    uint64_t computed_ns = 0;  // of the CPU, while it did little else
    Clock::time_point looked_at{};
    std::chrono::milliseconds pause{};
    bool being_split = false;
};

struct HomeProcess {
    enum class State {
        native,     // untouched by gpr but for the filter: a child that has not been split (yet)
        preparing,  // the stub is going in
        split,      // has a fragment here and one at the acceptor
        ending,
    };

    pid_t pid = 0;
    State state = State::native;
    HomeProcess* shares_memory_with = nullptr;  // vfork children, until they exec; it may be gone
    std::weak_ptr<Fragment> guest_of;           // the memory that it shares then, if it is split
    bool has_guests = false;                    // children that share its memory and run beside it
    std::shared_ptr<Fragment> fragment;
    // Of the filter that reports its calls; null: there is none, and resting_filter.h stops some.
    std::shared_ptr<Fd> listener;
    std::shared_ptr<ForkedMemory> inherits;  // until it has a fragment that shows it
    std::unordered_map<pid_t, HomeThread*> threads;
    Address syscall_instruction;  // one to inject calls with before the stub is in
    std::string executable;       // path of the program's own file
    std::map<ObjectId, CopiedFile> copied_files;
    std::vector<InheritedCopy> inherited;  // until it is split
    std::vector<InheritedFunctions> inherited_functions;
    Address stack_used{};  // how far down the main stack was used, when last looked at
    std::vector<std::pair<Range, bool>> inherited_growing;  // until it is split; main stack or not
    AddressSpace marked;                                    // by its parent: MemoryGate::inherit()
    std::vector<std::shared_ptr<ChangeWindow>> changes;     // that it makes here, by acceptor
    ino_t ipc_at_birth = 0;    // in which IPC namespace its parent was then
    uint64_t break_begin = 0;  // brk: where the heap starts and ends
    uint64_t break_end = 0;
    // Bit n-1: the program may have a handler for signal n. Without the bit it has none.
    uint64_t caught_signals = 0;
    uint64_t restarting_signals = 0;  // whose handler lets calls go on: SA_RESTART
    // SA_RESETHAND, by signal: the action that is left once the handler has begun.
    std::map<int, std::array<uint64_t, 4>> one_shot_actions;
    std::array<uint64_t, 4> trap_action{};      // of SIGTRAP, which a breakpoint may undo
    std::map<int, SignalAction> fault_actions;  // of signals that faults of ours raise: Growth
    uint64_t blocking_trap = 0;                 // signals whose handlers run with SIGTRAP blocked
    uint64_t to_reset = 0;                      // those that the kernel here must be told of
    std::unique_ptr<AsyncMutex> actions;  // held while the kernel here is told of a disposition
    std::map<int, rlimit> memory_limits;  // by resource: those that the program has set
    bool started_remotely = false;
    // fd_names.h: those that the acceptor knows, by number; the numbers that filters watch.
    std::map<int, uint64_t> names_told;
    std::set<int> names_watched;
    std::map<int, NodeId> epolls_there;  // epoll descriptors that watch files of that acceptor, too
    size_t common_filters = 0;  // that all its threads were put under at once, at the acceptor
    int forks = 0;  // threads here that are in a fork: meanwhile none runs at the acceptor
    std::set<NodeId> frozen_at;  // where none does now
    uint32_t freezes = 0;        // how often that was asked for
    bool new_image = false;      // it has called exec, not only been born
    bool has_rested = false;     // since then
    bool executing = false;      // an exec is under way: threads that end are its doing
    bool group_exit = false;     // exit_group is under way: all threads end
    bool finished = false;       // its last moment has passed: Ends::finish()
    bool doomed = false;         // it is being made to end with status 125
    bool stopped = false;        // by job control, and so is its other half
    // At the acceptor:
    Usage used_by_images;                   // by images of this process that have ended,
    Usage used_by_ending;                   // by one of which not all acceptors have told yet,
    NodeId ended_at = 0;                    // so many have
    Usage used_by_children;                 // by children that it has waited for, and theirs
    std::map<pid_t, Usage> ended_children;  // that it has not
    CpuTimers cpu_timers;
    uint64_t cpu_timers_turn = 0;  // of the coroutine that looks after them
    uint64_t pending_timers = 0;   // a set of signals that were pending at the acceptor at its exec
    bool is_root = false;
    std::unique_ptr<Rest> rest;  // while it rests: resting.h
    bool detaching = false;      // all of it comes home, to go on without us: detachment.h
    bool stays_home = false;     // in namespaces of its own: namespaces.h
    int ends_begun = 0;          // threads that wait for what the kernel looks at in their end

    // One that has not been split yet, and that nothing keeps from it: a child, or one that rests.
    [[nodiscard]] bool can_be_split() const {
        return state == State::native && !shares_memory_with && !stays_home && !doomed &&
               (rest || (!is_root && threads.size() == 1));
    }
};

}  // namespace gpr
