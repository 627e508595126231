// What the parts of a session on an acceptor share: its processes, the objects that they run on,
// and references to each other. Each part is one concern of the session, with its own state.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "acceptor/box/sandbox.h"
#include "acceptor/worker/remote_process.h"
#include "monitor/node/address_change.h"
#include "monitor/node/node_counts.h"
#include "monitor/paging/layout_parts.h"
#include "monitor/paging/pager.h"
#include "monitor/tracee/waits.h"
#include "transport/link.h"
#include "transport/loop.h"

namespace gpr {

struct Hello;

namespace worker {

class Advice;
class Affinity;
class Breaks;
class CallRules;
class Calls;
class Clones;
class ClosedNumbers;
class Contents;
class Crossings;
class Delegations;
class DeviceMemory;
class Ends;
class Epolls;
class FileMappings;
class Files;
class Filters;
class Forks;
class Forwarding;
class Futexes;
class Growth;
class Inheritance;
class KernelPages;
class Lookups;
class MappingChanges;
class Masks;
class OwnSignals;
class MemoryCalls;
class Mirrors;
class Names;
class Observations;
class Polls;
class Remaps;
class Selects;
class SharedMemory;
class Signals;
class Standstill;
class Starts;
class Threads;
class Timers;
class UsageReports;

struct Worker {
    Worker(Loop& loop, Waits& waits, Link& link, Sandbox& sandbox, const Hello& peer, Fd stub_code,
           bool unlike_vdso);
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    // Tells home of a change made here.
    void tell(pid_t pid, const AddressChange& change) const {
        tell_change(link, directory_node, pid, change);
    }
    [[nodiscard]] NodeCounts counts_so_far() const { return {pager.stats(), counts}; }
    RemoteProcess* find_process(pid_t pid);
    RemoteThread* find_thread(pid_t pid, pid_t tid);

    Loop& loop;
    Waits& waits;
    Link& link;
    Sandbox& sandbox;
    NodeId self;
    Pager pager;
    AsyncMutex metadata;
    Signal stopped;  // a thread of a frozen process has stopped
    std::unordered_map<pid_t, std::unique_ptr<RemoteProcess>> processes;  // by pid
    std::unordered_map<pid_t, RemoteThread*> by_host_tid;
    std::unordered_map<pid_t, RemoteProcess*> owners;  // by host tid, helpers included
    ObjectId next_object;
    LayoutParts layouts;
    CallCounts counts;
    // Set by the session, which handles the kernel's events.
    std::function<void(pid_t host_tid, WaitStatus status)> on_wait;
    std::function<void(const Notification& n)> on_notification;

private:
    struct Parts;
    const std::unique_ptr<Parts> parts_;

public:
    // Processes and threads.
    Starts& starts;
    KernelPages& kernel_pages;
    Threads& threads;
    Clones& clones;
    Forks& forks;
    Standstill& standstill;
    Inheritance& inheritance;
    Ends& ends;
    Crossings& crossings;
    Affinity& affinity;
    // Calls.
    Calls& calls;
    Forwarding& forwarding;
    Mirrors& mirrors;
    CallRules& call_rules;
    Filters& filters;
    UsageReports& usage_reports;
    Observations& observations;
    // Descriptors and files.
    Files& files;
    Names& names;
    ClosedNumbers& closed_numbers;
    Delegations& delegations;
    Lookups& lookups;
    DeviceMemory& device_memory;
    Polls& polls;
    Epolls& epolls;
    Selects& selects;
    // Memory.
    MemoryCalls& memory_calls;
    Breaks& breaks;
    MappingChanges& mapping_changes;
    FileMappings& file_mappings;
    Contents& contents;
    SharedMemory& shared_memory;
    Remaps& remaps;
    Advice& advice;
    Growth& growth;
    Futexes& futexes;
    // Signals.
    Signals& signals;
    OwnSignals& own_signals;
    Masks& masks;
    Timers& timers;
};

}  // namespace worker

}  // namespace gpr
