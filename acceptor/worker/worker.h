// What the parts of a session on the acceptor share: its processes, what they run on, and each
// other. Each part is one concern of the session, with what only that needs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "acceptor/box/sandbox.h"
#include "acceptor/worker/advice.h"
#include "acceptor/worker/affinity.h"
#include "acceptor/worker/call_rules.h"
#include "acceptor/worker/calls.h"
#include "acceptor/worker/clones.h"
#include "acceptor/worker/crossings.h"
#include "acceptor/worker/ends.h"
#include "acceptor/worker/epolls.h"
#include "acceptor/worker/file_mappings.h"
#include "acceptor/worker/files.h"
#include "acceptor/worker/filters.h"
#include "acceptor/worker/forks.h"
#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/futexes.h"
#include "acceptor/worker/growth.h"
#include "acceptor/worker/inheritance.h"
#include "acceptor/worker/kernel_pages.h"
#include "acceptor/worker/mapping_changes.h"
#include "acceptor/worker/masks.h"
#include "acceptor/worker/memory_calls.h"
#include "acceptor/worker/mirrors.h"
#include "acceptor/worker/names.h"
#include "acceptor/worker/polls.h"
#include "acceptor/worker/remaps.h"
#include "acceptor/worker/remote_process.h"
#include "acceptor/worker/selects.h"
#include "acceptor/worker/shared_memory.h"
#include "acceptor/worker/signals.h"
#include "acceptor/worker/standstill.h"
#include "acceptor/worker/starts.h"
#include "acceptor/worker/threads.h"
#include "acceptor/worker/timers.h"
#include "acceptor/worker/usage_reports.h"
#include "monitor/paging/layout_parts.h"
#include "monitor/paging/pager.h"
#include "monitor/tracee/waits.h"
#include "transport/link.h"
#include "transport/loop.h"

namespace gpr {

struct Hello;

namespace worker {

// By who made them.
struct CallCounts {
    uint64_t home = 0;
    uint64_t native = 0;
    uint64_t fd_owner = 0;  // that we saw
};

struct Worker {
    Worker(Loop& loop, Waits& waits, Link& link, Sandbox& sandbox, const Hello& peer, Fd stub_code,
           bool unlike_vdso);
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    RemoteProcess* find_process(pid_t pid);
    RemoteThread* find_thread(pid_t pid, pid_t tid);

    Loop& loop;
    Waits& waits;
    Link& link;
    Sandbox& sandbox;
    NodeId self;
    Pager pager;
    AsyncMutex metadata;
    Signal stopped;  // a thread of a frozen process stands still
    std::unordered_map<pid_t, std::unique_ptr<RemoteProcess>> processes;  // by pid
    std::unordered_map<pid_t, RemoteThread*> by_host_tid;
    std::unordered_map<pid_t, RemoteProcess*> owners;  // by host tid, helpers too
    ObjectId next_object;
    LayoutParts layouts;
    CallCounts counts;
    // What the kernel has to say of a thread goes to the session, which set these.
    std::function<void(pid_t host_tid, WaitStatus status)> on_wait;
    std::function<void(const Notification& n)> on_notification;

    // Processes and threads.
    Starts starts;
    KernelPages kernel_pages;
    Threads threads{*this};
    Clones clones{*this};
    Forks forks{*this};
    Standstill standstill{*this};
    Inheritance inheritance{*this};
    Ends ends{*this};
    Crossings crossings{*this};
    Affinity affinity{*this};
    // Calls.
    Calls calls{*this};
    Forwarding forwarding{*this};
    Mirrors mirrors{*this};
    CallRules call_rules;
    Filters filters{*this};
    UsageReports usage_reports{*this};
    // Descriptors and files.
    Files files;
    Names names{*this};
    Polls polls{*this};
    Epolls epolls{*this};
    Selects selects{*this};
    // Memory.
    MemoryCalls memory_calls{*this};
    MappingChanges mapping_changes{*this};
    FileMappings file_mappings{*this};
    SharedMemory shared_memory{*this};
    Remaps remaps{*this};
    Advice advice{*this};
    Growth growth{*this};
    Futexes futexes{*this};
    // Signals.
    Signals signals{*this};
    Masks masks{*this};
    Timers timers{*this};
};

}  // namespace worker

}  // namespace gpr
