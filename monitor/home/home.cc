#include "monitor/home/home.h"

#include <algorithm>
#include <utility>

#include "monitor/home/acceptor_files.h"
#include "monitor/home/adoption.h"
#include "monitor/home/affinity.h"
#include "monitor/home/aio.h"
#include "monitor/home/births.h"
#include "monitor/home/calls.h"
#include "monitor/home/children.h"
#include "monitor/home/code_faults.h"
#include "monitor/home/code_placement.h"
#include "monitor/home/contended_memory.h"
#include "monitor/home/core_dumps.h"
#include "monitor/home/cpu_timing.h"
#include "monitor/home/crossings.h"
#include "monitor/home/debugging.h"
#include "monitor/home/delegations.h"
#include "monitor/home/detachment.h"
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
#include "monitor/home/homecoming.h"
#include "monitor/home/images.h"
#include "monitor/home/kept_calls.h"
#include "monitor/home/last_words.h"
#include "monitor/home/layouts.h"
#include "monitor/home/loans.h"
#include "monitor/home/local_calls.h"
#include "monitor/home/lookups.h"
#include "monitor/home/main_stack.h"
#include "monitor/home/memory_calls.h"
#include "monitor/home/memory_files.h"
#include "monitor/home/memory_gate.h"
#include "monitor/home/namespaces.h"
#include "monitor/home/observations.h"
#include "monitor/home/passed_signals.h"
#include "monitor/home/pinned_pages.h"
#include "monitor/home/proc_files.h"
#include "monitor/home/proxy_calls.h"
#include "monitor/home/remote_usage.h"
#include "monitor/home/resolvers.h"
#include "monitor/home/resting.h"
#include "monitor/home/shared_memory.h"
#include "monitor/home/signal_actions.h"
#include "monitor/home/signals.h"
#include "monitor/home/statistics.h"
#include "monitor/home/stops.h"
#include "monitor/home/stub_entry.h"
#include "monitor/home/taken_calls.h"
#include "monitor/home/trap_state.h"
#include "monitor/home/truncation.h"
#include "monitor/home/vfork_children.h"
#include "monitor/home/visits.h"
#include "monitor/paging/page_wire.h"

namespace gpr::home {

struct Home::Parts {
    Home& home;
    Fd stub_code;

    // Processes and threads.
    Births births{home};
    Images images{home};
    StubEntry stub_entry{home, std::move(stub_code)};
    Children children{home};
    Resting resting{home};
    Adoption adoption{home};
    Homecoming homecoming{home};
    Detachment detachment{home};
    CoreDumps core_dumps{home};
    Debugging debugging{home};
    ForksAtHome forks_at_home{home};
    ForksInPlace forks_in_place{home};
    VforkChildren vfork_children{home};
    Namespaces namespaces{home};
    Ends ends{home};
    LastWords last_words{home};
    Failures failures{home};
    Statistics statistics{home};
    Observations observations{home};
    // Where threads run.
    Stops stops{home};
    Crossings crossings{home};
    Visits visits{home};
    Affinity affinity{home};
    // Which code runs where.
    CodePlacement code_placement{home};
    CodeFaults code_faults{home};
    PinnedPages pinned_pages{home};
    Functions functions{home};
    Resolvers resolvers{home};
    TrapState trap_state{home};
    // System calls.
    Calls calls{home};
    LocalCalls local_calls{home};
    TakenCalls taken_calls{home};
    ProxyCalls proxy_calls{home};
    Filters filters{home};
    RemoteUsage remote_usage{home};
    CpuTiming cpu_timing{home};
    Futexes futexes{home};
    Aio aio{home};
    // Files and descriptors.
    AcceptorFiles acceptor_files{home};
    Delegations delegations{home};
    Lookups lookups{home};
    FdNames fd_names{home};
    KeptCalls kept_calls{home};
    ProcFiles proc_files{home};
    MemoryFiles memory_files{home};
    // Memory.
    MemoryCalls memory_calls{home};
    MemoryGate memory_gate{home};
    Layouts layouts{home};
    FileCopies file_copies{home};
    Truncation truncation{home};
    MainStack main_stack{home};
    GuardPages guard_pages{home};
    Growth growth{home};
    Faultfds faultfds{home};
    // Shared memory.
    SharedMemory shared_memory{home};
    ContendedMemory contended_memory{home};
    Loans loans{home};
    // Signals.
    Signals signals{home};
    SignalActions signal_actions{home};
    PassedSignals passed_signals{home};
};

Home::Home(Loop& the_loop, Waits& the_waits, Acceptors its_acceptors,
           const ExecOptions& the_options, SessionOutputs& the_outputs, Fd stub_code)
    : loop(the_loop),
      waits(the_waits),
      options(the_options),
      outputs(the_outputs),
      pager(directory_node, loop, &directory,
            [this](NodeId to, bool bulk, const Message& m) { send_pages(to, bulk, m); }),
      acceptors(std::move(its_acceptors)),
      parts_(std::make_unique<Parts>(*this, std::move(stub_code))),
      births(parts_->births),
      images(parts_->images),
      stub_entry(parts_->stub_entry),
      children(parts_->children),
      resting(parts_->resting),
      adoption(parts_->adoption),
      homecoming(parts_->homecoming),
      detachment(parts_->detachment),
      core_dumps(parts_->core_dumps),
      debugging(parts_->debugging),
      forks_at_home(parts_->forks_at_home),
      forks_in_place(parts_->forks_in_place),
      vfork_children(parts_->vfork_children),
      namespaces(parts_->namespaces),
      ends(parts_->ends),
      last_words(parts_->last_words),
      failures(parts_->failures),
      statistics(parts_->statistics),
      observations(parts_->observations),
      stops(parts_->stops),
      crossings(parts_->crossings),
      visits(parts_->visits),
      affinity(parts_->affinity),
      code_placement(parts_->code_placement),
      code_faults(parts_->code_faults),
      pinned_pages(parts_->pinned_pages),
      functions(parts_->functions),
      resolvers(parts_->resolvers),
      trap_state(parts_->trap_state),
      calls(parts_->calls),
      local_calls(parts_->local_calls),
      taken_calls(parts_->taken_calls),
      proxy_calls(parts_->proxy_calls),
      filters(parts_->filters),
      remote_usage(parts_->remote_usage),
      cpu_timing(parts_->cpu_timing),
      futexes(parts_->futexes),
      aio(parts_->aio),
      acceptor_files(parts_->acceptor_files),
      delegations(parts_->delegations),
      lookups(parts_->lookups),
      fd_names(parts_->fd_names),
      kept_calls(parts_->kept_calls),
      proc_files(parts_->proc_files),
      memory_files(parts_->memory_files),
      memory_calls(parts_->memory_calls),
      memory_gate(parts_->memory_gate),
      layouts(parts_->layouts),
      file_copies(parts_->file_copies),
      truncation(parts_->truncation),
      main_stack(parts_->main_stack),
      guard_pages(parts_->guard_pages),
      growth(parts_->growth),
      faultfds(parts_->faultfds),
      shared_memory(parts_->shared_memory),
      contended_memory(parts_->contended_memory),
      loans(parts_->loans),
      signals(parts_->signals),
      signal_actions(parts_->signal_actions),
      passed_signals(parts_->passed_signals) {
    if (uint64_t seed = policy.chaos_seed()) chaos = std::make_unique<Chaos>(seed, directory_node);
}

Home::~Home() = default;

void Home::send_pages(NodeId to, bool bulk, const Message& message) const {
    FrameBuilder frame;
    encode_pages(frame, message);
    acceptors.at(to).link.send(frame, bulk ? Priority::bulk : Priority::urgent);
}

HomeThread* Home::find_thread(pid_t pid, pid_t tid) {
    auto it = threads.find(tid);
    return it != threads.end() && it->second->process->pid == pid ? it->second.get() : nullptr;
}

bool Home::supervises_threads() const {
    return std::ranges::any_of(processes, [](const auto& entry) {
        return !entry.second->rest && !entry.second->threads.empty();
    });
}

HomeProcess* Home::find_process(pid_t pid) {
    auto it = processes.find(pid);
    return it == processes.end() ? nullptr : it->second.get();
}

}  // namespace gpr::home
