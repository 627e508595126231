#include "monitor/home/adoption.h"

#include <csignal>
#include <ranges>

#include "base/log.h"
#include "monitor/home/births.h"
#include "monitor/home/failures.h"
#include "monitor/home/home.h"
#include "monitor/home/images.h"
#include "monitor/home/namespaces.h"
#include "monitor/home/signals.h"
#include "monitor/home/stops.h"
#include "monitor/tracee/call_stops.h"
#include "monitor/tracee/interrupted_call.h"
#include "monitor/tracee/mapping_flags.h"
#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/resumed_wait.h"

namespace gpr::home {

namespace {
constexpr std::chrono::milliseconds longest_taking{10};
constexpr std::chrono::microseconds looks_every{20};
}  // namespace

void Adoption::note_memory(HomeProcess& process, const MemoryState& memory) {
    process.marked.lock_new(memory.lock_of_new);
    process.mapping_policies.clear();
    for (const MappingFlags& m : memory.mappings) {
        const bool main = m.name == "[stack]";
        if (main) process.stack_used = m.range.begin;
        if (m.grows_down) process.inherited_growing.emplace_back(m.range, main);
        if (!m.policy.empty()) process.mapping_policies.emplace_back(m.range, m.policy);
        if (!m.locked && !m.not_forked && !m.wiped_on_fork) continue;
        Mapping marked;
        marked.range = m.range;
        marked.locked = m.locked;
        marked.locked_on_fault = m.locked_on_fault;
        marked.not_forked = m.not_forked;
        marked.wiped_on_fork = m.wiped_on_fork;
        process.marked.map(std::move(marked));
    }
}

void Adoption::note_thread(HomeThread& thread, const StoppedThread& was) {
    thread.rseq = was.rseq;
    thread.cpu_modes = was.cpu_modes;
    thread.note_memory_policy(was.memory_policy);
    thread.blocks_trap = was.signal_mask >> (SIGTRAP - 1) & 1;
    if (CpuMask its = cpu_mask_now(was.tid); its != cpu_mask_now(getpid())) {
        thread.affinity = std::move(its);
    }
}

// All are known before the first goes on, because they may share memory.
void Adoption::adopt_all(std::vector<Infection::Taken> taken,
                         const std::function<void()>& is_attached) {
    for (Infection::Taken& each : taken) {
        add_process(each, &each == &taken.front());
    }
    home_.orphaned_helpers.expect();
    auto missing = std::make_shared<size_t>(taken.size());
    for (Infection::Taken& each : taken) {
        HomeProcess& process = *home_.processes.at(each.pid);
        spawn(take_over(process, std::move(each), [missing, is_attached] {
            if (--*missing == 0) is_attached();
        }));
    }
}

void Adoption::add_process(Infection::Taken& taken, bool is_root) {
    auto made = std::make_unique<HomeProcess>();
    HomeProcess& process = *made;
    process.pid = taken.pid;
    process.is_root = is_root;
    process.state = HomeProcess::State::preparing;
    process.caught_signals = trace::signal_set(process.pid, "SigCgt:");
    process.files_limit = taken.files_limit;
    note_memory(process, taken.memory);
    home_.processes[process.pid] = std::move(made);
    for (const StoppedThread& was : taken.threads) {
        HomeThread& thread = home_.births.add_thread(process, was.tid);
        thread.clear_tid = was.clear_tid;
        note_thread(thread, was);
        process.stopped |= was.by_job_control;
        home_.stops.watch(thread);
        CallStops::begin(was.tid);
    }
}

Task<void> Adoption::take_over(HomeProcess& process, Infection::Taken taken,
                               std::function<void()> is_attached) {
    const std::vector<StoppedThread>& threads = taken.threads;
    const pid_t pid = process.pid;
    HomeThread& main = *process.threads.at(pid);
    auto prepared = co_await home_.images.prepare(process, main);
    if (!prepared) {
        home_.failures.could_not_split(pid, prepared.error());
        co_return;
    }
    home_.outputs.user().doing("");
    // The main thread has been in our stub: restore its own state.
    ThreadContext context;
    context.regs = threads.front().regs;
    context.signal_mask = threads.front().signal_mask;
    auto back = co_await home_.stops.take_out(main, context);
    if (!back || home_.find_process(pid) != &process) co_return;
    if (process.stopped) Signals::stop_after_all(main);
    go_on(process, threads.front());
    const auto until = Clock::now() + longest_taking;
    while (threads.size() > 1 && main_has_signals(pid) && Clock::now() < until) {
        co_await home_.loop.sleep(looks_every);
    }
    if (home_.find_process(pid) != &process) co_return;
    for (const StoppedThread& was : threads | std::views::drop(1)) go_on(process, was);
    const std::chrono::duration<double, std::milli> stopped = Clock::now() - taken.since;
    spdlog::info("process {} is attached: {}, {} threads, which stood still for {:.1f} ms", pid,
                 process.executable, threads.size(), stopped.count());
    is_attached();
}

void Adoption::go_on(HomeProcess& process, const StoppedThread& was) {
    HomeThread* thread = home_.find_thread(process.pid, was.tid);
    if (!thread) return;
    for (Twin& twin : thread->twins) {
        twin = {twin.filters, {}, true, twin.affinity_told, twin.policy_told};
    }
    thread->suspended = suspended_by(was.regs);
    if (was.by_job_control) {
        let_wait_end(was.tid);  // end the call as the stop would have ended it
    } else {
        home_.signals.go_on_waiting(*thread);
    }
    trace::resume(was.tid);
}

}  // namespace gpr::home
