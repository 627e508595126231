#include "acceptor/worker/worker.h"

#include "acceptor/worker/advice.h"
#include "acceptor/worker/affinity.h"
#include "acceptor/worker/breaks.h"
#include "acceptor/worker/call_rules.h"
#include "acceptor/worker/calls.h"
#include "acceptor/worker/clones.h"
#include "acceptor/worker/closed_numbers.h"
#include "acceptor/worker/contents.h"
#include "acceptor/worker/crossings.h"
#include "acceptor/worker/delegations.h"
#include "acceptor/worker/device_memory.h"
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
#include "acceptor/worker/lookups.h"
#include "acceptor/worker/mapping_changes.h"
#include "acceptor/worker/masks.h"
#include "acceptor/worker/memory_calls.h"
#include "acceptor/worker/mirrors.h"
#include "acceptor/worker/names.h"
#include "acceptor/worker/observations.h"
#include "acceptor/worker/own_signals.h"
#include "acceptor/worker/polls.h"
#include "acceptor/worker/remaps.h"
#include "acceptor/worker/selects.h"
#include "acceptor/worker/shared_memory.h"
#include "acceptor/worker/signals.h"
#include "acceptor/worker/standstill.h"
#include "acceptor/worker/starts.h"
#include "acceptor/worker/threads.h"
#include "acceptor/worker/timers.h"
#include "acceptor/worker/usage_reports.h"
#include "monitor/node/object_ids.h"
#include "monitor/paging/page_wire.h"
#include "transport/handshake.h"

namespace gpr::worker {

struct Worker::Parts {
    Worker& worker;
    const Hello& peer;
    Fd stub_code;
    bool unlike_vdso;

    // Processes and threads.
    Starts starts{worker, std::move(stub_code)};
    KernelPages kernel_pages{worker, peer.vdso, unlike_vdso};
    Threads threads{worker};
    Clones clones{worker};
    Forks forks{worker};
    Standstill standstill{worker};
    Inheritance inheritance{worker};
    Ends ends{worker};
    Crossings crossings{worker};
    Affinity affinity{worker};
    // Calls.
    Calls calls{worker};
    Forwarding forwarding{worker};
    Mirrors mirrors{worker};
    CallRules call_rules{worker, peer.calls};
    Filters filters{worker};
    UsageReports usage_reports{worker};
    Observations observations{worker};
    // Descriptors and files.
    Files files{worker, PathRules(peer.paths, peer.root_links)};
    Names names{worker};
    ClosedNumbers closed_numbers{worker};
    Delegations delegations{worker};
    Lookups lookups{worker};
    DeviceMemory device_memory{worker};
    Polls polls{worker};
    Epolls epolls{worker};
    Selects selects{worker};
    // Memory.
    MemoryCalls memory_calls{worker};
    Breaks breaks{worker};
    MappingChanges mapping_changes{worker};
    FileMappings file_mappings{worker};
    Contents contents{worker};
    SharedMemory shared_memory{worker};
    Remaps remaps{worker};
    Advice advice{worker};
    Growth growth{worker};
    Futexes futexes{worker};
    // Signals.
    Signals signals{worker};
    OwnSignals own_signals{worker};
    Masks masks{worker};
    Timers timers{worker};
};

Worker::Worker(Loop& the_loop, Waits& the_waits, Link& the_link, Sandbox& the_sandbox,
               const Hello& peer, Fd stub_code, bool unlike_vdso)
    : loop(the_loop),
      waits(the_waits),
      link(the_link),
      sandbox(the_sandbox),
      self(static_cast<NodeId>(peer.node_id)),
      pager(self, loop, nullptr,
            [this](NodeId, bool bulk, const Message& message) {
                FrameBuilder frame;
                encode_pages(frame, message);
                link.send(frame, bulk ? Priority::bulk : Priority::urgent);
            }),
      metadata(loop),
      stopped(loop),
      next_object(first_object_of(self)),
      parts_(std::make_unique<Parts>(*this, peer, std::move(stub_code), unlike_vdso)),
      starts(parts_->starts),
      kernel_pages(parts_->kernel_pages),
      threads(parts_->threads),
      clones(parts_->clones),
      forks(parts_->forks),
      standstill(parts_->standstill),
      inheritance(parts_->inheritance),
      ends(parts_->ends),
      crossings(parts_->crossings),
      affinity(parts_->affinity),
      calls(parts_->calls),
      forwarding(parts_->forwarding),
      mirrors(parts_->mirrors),
      call_rules(parts_->call_rules),
      filters(parts_->filters),
      usage_reports(parts_->usage_reports),
      observations(parts_->observations),
      files(parts_->files),
      names(parts_->names),
      closed_numbers(parts_->closed_numbers),
      delegations(parts_->delegations),
      lookups(parts_->lookups),
      device_memory(parts_->device_memory),
      polls(parts_->polls),
      epolls(parts_->epolls),
      selects(parts_->selects),
      memory_calls(parts_->memory_calls),
      breaks(parts_->breaks),
      mapping_changes(parts_->mapping_changes),
      file_mappings(parts_->file_mappings),
      contents(parts_->contents),
      shared_memory(parts_->shared_memory),
      remaps(parts_->remaps),
      advice(parts_->advice),
      growth(parts_->growth),
      futexes(parts_->futexes),
      signals(parts_->signals),
      own_signals(parts_->own_signals),
      masks(parts_->masks),
      timers(parts_->timers) {}

Worker::~Worker() = default;

RemoteProcess* Worker::find_process(pid_t pid) {
    auto it = processes.find(pid);
    return it == processes.end() ? nullptr : it->second.get();
}

RemoteThread* Worker::find_thread(pid_t pid, pid_t tid) {
    RemoteProcess* process = find_process(pid);
    if (!process) return nullptr;
    auto it = process->threads.find(tid);
    return it == process->threads.end() ? nullptr : it->second.get();
}

}  // namespace gpr::worker
