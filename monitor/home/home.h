// What the parts of the session on node 0 share: its processes and threads, the directory, what is
// known of the acceptors, and references to each other. Each part is one concern of the session,
// with its own state.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <unordered_map>

#include "base/task.h"
#include "mm/page_directory.h"
#include "monitor/home/acceptors.h"
#include "monitor/home/process.h"
#include "monitor/home/session_outputs.h"
#include "monitor/node/session_stats.h"
#include "monitor/paging/pager.h"
#include "monitor/rules/chaos.h"
#include "monitor/rules/exec_options.h"
#include "monitor/rules/rule_use.h"
#include "monitor/rules/split_policy.h"
#include "monitor/tracee/filter_notifier.h"
#include "monitor/tracee/orphaned_helpers.h"
#include "monitor/tracee/waits.h"
#include "transport/link.h"
#include "transport/loop.h"

namespace gpr {
class CallStops;
}  // namespace gpr

namespace gpr::home {

class AcceptorFiles;
class Adoption;
class Affinity;
class Aio;
class Births;
class Calls;
class Children;
class CodeFaults;
class CodePlacement;
class ContendedMemory;
class CpuTiming;
class Crossings;
class CoreDumps;
class Debugging;
class Delegations;
class Detachment;
class Homecoming;
class Ends;
class Failures;
class Faultfds;
class FdNames;
class FileCopies;
class Filters;
class ForksAtHome;
class ForksInPlace;
class Functions;
class Futexes;
class Growth;
class GuardPages;
class VforkChildren;
class Images;
class KeptCalls;
class LastWords;
class Layouts;
class Loans;
class LocalCalls;
class Lookups;
class MainStack;
class MemoryCalls;
class MemoryFiles;
class MemoryGate;
class Namespaces;
class Observations;
class PassedSignals;
class PinnedPages;
class ProcFiles;
class ProxyCalls;
class RemoteUsage;
class Resolvers;
class Resting;
class SharedMemory;
class SignalActions;
class Signals;
class Statistics;
class Stops;
class StubEntry;
class TakenCalls;
class TrapState;
class Truncation;
class Visits;

struct Home {
    Home(Loop& loop, Waits& waits, Acceptors acceptors, const ExecOptions& options,
         SessionOutputs& outputs, Fd stub_code);
    ~Home();
    Home(const Home&) = delete;
    Home& operator=(const Home&) = delete;

    HomeThread* find_thread(pid_t pid, pid_t tid);
    HomeProcess* find_process(pid_t pid);
    // Whether any process that has threads does not rest.
    [[nodiscard]] bool supervises_threads() const;

    Loop& loop;
    Waits& waits;
    const ExecOptions& options;
    SessionOutputs& outputs;
    SplitPolicy policy{options.rules, options.attaches};
    const bool has_gravity = options.gravity && policy.has_gravity();
    RuleUse rule_use{options.rules};
    std::unique_ptr<Chaos> chaos;
    PageDirectory directory;
    Pager pager;
    Acceptors acceptors;
    // How calls are reported: by seccomp filters, or because threads stop at them. The other
    // pointer is null.
    std::unique_ptr<Notifier> notifier;
    FilterNotifier* filter_notifier = nullptr;
    CallStops* call_stops = nullptr;
    std::unordered_map<pid_t, std::unique_ptr<HomeProcess>> processes;
    std::unordered_map<pid_t, std::unique_ptr<HomeThread>> threads;
    AsyncMutex metadata{loop};    // held while a change of an address space is applied
    Signal remote_changed{loop};  // something changed at an acceptor, or a thread has ended
    OrphanedHelpers orphaned_helpers;
    SessionStats stats;
    // Set by the session, which handles the kernel's events.
    std::function<void(pid_t tid, WaitStatus status)> on_wait;
    std::function<void(const Notification& n)> on_notification;

private:
    void send_pages(NodeId to, bool bulk, const Message& message) const;

    struct Parts;
    const std::unique_ptr<Parts> parts_;

public:
    // Processes and threads.
    Births& births;
    Images& images;
    StubEntry& stub_entry;
    Children& children;
    Resting& resting;
    Adoption& adoption;
    Homecoming& homecoming;
    Detachment& detachment;
    CoreDumps& core_dumps;
    Debugging& debugging;
    ForksAtHome& forks_at_home;
    ForksInPlace& forks_in_place;
    VforkChildren& vfork_children;
    Namespaces& namespaces;
    Ends& ends;
    LastWords& last_words;
    Failures& failures;
    Statistics& statistics;
    Observations& observations;
    // Where threads run.
    Stops& stops;
    Crossings& crossings;
    Visits& visits;
    Affinity& affinity;
    // Which code runs where.
    CodePlacement& code_placement;
    CodeFaults& code_faults;
    PinnedPages& pinned_pages;
    Functions& functions;
    Resolvers& resolvers;
    TrapState& trap_state;
    // System calls.
    Calls& calls;
    LocalCalls& local_calls;
    TakenCalls& taken_calls;
    ProxyCalls& proxy_calls;
    Filters& filters;
    RemoteUsage& remote_usage;
    CpuTiming& cpu_timing;
    Futexes& futexes;
    Aio& aio;
    // Files and descriptors.
    AcceptorFiles& acceptor_files;
    Delegations& delegations;
    Lookups& lookups;
    FdNames& fd_names;
    KeptCalls& kept_calls;
    ProcFiles& proc_files;
    MemoryFiles& memory_files;
    // Memory.
    MemoryCalls& memory_calls;
    MemoryGate& memory_gate;
    Layouts& layouts;
    FileCopies& file_copies;
    Truncation& truncation;
    MainStack& main_stack;
    GuardPages& guard_pages;
    Growth& growth;
    Faultfds& faultfds;
    // Shared memory.
    SharedMemory& shared_memory;
    ContendedMemory& contended_memory;
    Loans& loans;
    // Signals.
    Signals& signals;
    SignalActions& signal_actions;
    PassedSignals& passed_signals;
};

}  // namespace gpr::home
