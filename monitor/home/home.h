// What the parts of a session on node 0 share: its processes and threads, the directory, what home
// knows of the acceptor, and each other. Each part is one concern of the session, with what only
// that needs.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <unordered_map>

#include "base/task.h"
#include "mm/page_directory.h"
#include "monitor/home/acceptor_files.h"
#include "monitor/home/affinity.h"
#include "monitor/home/aio.h"
#include "monitor/home/births.h"
#include "monitor/home/calls.h"
#include "monitor/home/children.h"
#include "monitor/home/code_faults.h"
#include "monitor/home/code_placement.h"
#include "monitor/home/contended_memory.h"
#include "monitor/home/cpu_timing.h"
#include "monitor/home/crossings.h"
#include "monitor/home/ends.h"
#include "monitor/home/failures.h"
#include "monitor/home/faultfds.h"
#include "monitor/home/fd_names.h"
#include "monitor/home/file_copies.h"
#include "monitor/home/filters.h"
#include "monitor/home/forks_at_home.h"
#include "monitor/home/forks_in_place.h"
#include "monitor/home/functions.h"
#include "monitor/home/futexes.h"
#include "monitor/home/growth.h"
#include "monitor/home/guard_pages.h"
#include "monitor/home/guests.h"
#include "monitor/home/images.h"
#include "monitor/home/last_words.h"
#include "monitor/home/layouts.h"
#include "monitor/home/loans.h"
#include "monitor/home/local_calls.h"
#include "monitor/home/main_stack.h"
#include "monitor/home/memory_calls.h"
#include "monitor/home/memory_files.h"
#include "monitor/home/memory_gate.h"
#include "monitor/home/namespaces.h"
#include "monitor/home/passed_signals.h"
#include "monitor/home/pinned_pages.h"
#include "monitor/home/proc_files.h"
#include "monitor/home/process.h"
#include "monitor/home/remote_node.h"
#include "monitor/home/remote_usage.h"
#include "monitor/home/resolvers.h"
#include "monitor/home/session_outputs.h"
#include "monitor/home/shared_memory.h"
#include "monitor/home/signal_actions.h"
#include "monitor/home/signals.h"
#include "monitor/home/statistics.h"
#include "monitor/home/stops.h"
#include "monitor/home/stub_entry.h"
#include "monitor/home/taken_calls.h"
#include "monitor/home/trap_state.h"
#include "monitor/home/truncation.h"
#include "monitor/home/visits.h"
#include "monitor/node/session_stats.h"
#include "monitor/paging/pager.h"
#include "monitor/rules/chaos.h"
#include "monitor/rules/exec_options.h"
#include "monitor/rules/rule_use.h"
#include "monitor/rules/split_policy.h"
#include "monitor/tracee/notifier.h"
#include "monitor/tracee/orphaned_helpers.h"
#include "monitor/tracee/waits.h"
#include "transport/link.h"
#include "transport/loop.h"

namespace gpr::home {

struct Home {
    Home(Loop& loop, Waits& waits, Link& link, const ExecOptions& options, SessionOutputs& outputs,
         unsigned fd_base, Fd stub_code);
    Home(const Home&) = delete;
    Home& operator=(const Home&) = delete;

    HomeThread* find_thread(pid_t pid, pid_t tid);
    HomeProcess* find_process(pid_t pid);

    Loop& loop;
    Waits& waits;
    const ExecOptions& options;
    SessionOutputs& outputs;
    SplitPolicy policy;
    const bool has_gravity;
    RuleUse rule_use;
    std::unique_ptr<Chaos> chaos;
    PageDirectory directory;
    Pager pager;
    RemoteNode acceptor;
    std::unique_ptr<Notifier> notifier;
    std::unordered_map<pid_t, std::unique_ptr<HomeProcess>> processes;
    std::unordered_map<pid_t, std::unique_ptr<HomeThread>> threads;
    AsyncMutex metadata;    // held while a change of an address space is being applied
    Signal remote_changed;  // something that is waited for: at the acceptor, or a thread has ended
    OrphanedHelpers orphaned_helpers;
    SessionStats stats;
    // What the kernel has to say of a thread goes to the session, which set these.
    std::function<void(pid_t tid, WaitStatus status)> on_wait;
    std::function<void(const Notification& n)> on_notification;

    // Processes and threads.
    Births births{*this};
    Images images{*this};
    StubEntry stub_entry;
    Children children{*this};
    ForksAtHome forks_at_home{*this};
    ForksInPlace forks_in_place{*this};
    Guests guests{*this};
    Namespaces namespaces{*this};
    Ends ends{*this};
    LastWords last_words{*this};
    Failures failures{*this};
    Statistics statistics{*this};
    // Where threads run.
    Stops stops{*this};
    Crossings crossings{*this};
    Visits visits{*this};
    Affinity affinity{*this};
    // Which code runs where.
    CodePlacement code_placement{*this};
    CodeFaults code_faults{*this};
    PinnedPages pinned_pages{*this};
    Functions functions{*this};
    Resolvers resolvers{*this};
    TrapState trap_state{*this};
    // System calls.
    Calls calls{*this};
    LocalCalls local_calls{*this};
    TakenCalls taken_calls{*this};
    Filters filters{*this};
    RemoteUsage remote_usage{*this};
    CpuTiming cpu_timing{*this};
    Futexes futexes{*this};
    Aio aio{*this};
    // Files and descriptors.
    AcceptorFiles acceptor_files{*this};
    FdNames fd_names{*this};
    ProcFiles proc_files{*this};
    MemoryFiles memory_files{*this};
    // Memory.
    MemoryCalls memory_calls{*this};
    MemoryGate memory_gate{*this};
    Layouts layouts{*this};
    FileCopies file_copies{*this};
    Truncation truncation{*this};
    MainStack main_stack{*this};
    GuardPages guard_pages{*this};
    Growth growth{*this};
    Faultfds faultfds{*this};
    // Shared memory.
    SharedMemory shared_memory{*this};
    ContendedMemory contended_memory{*this};
    Loans loans{*this};
    // Signals.
    Signals signals{*this};
    SignalActions signal_actions{*this};
    PassedSignals passed_signals{*this};
};

}  // namespace gpr::home
