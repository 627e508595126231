#include "monitor/home/growth.h"

#include <sys/syscall.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "monitor/home/children.h"
#include "monitor/home/home.h"
#include "monitor/home/layouts.h"
#include "monitor/home/signal_actions.h"
#include "monitor/home/signals.h"
#include "monitor/home/stops.h"
#include "monitor/paging/growth.h"
#include "monitor/tracee/kernel_actions.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::home {

// True if the signal came from a touch just below such a mapping, and is handled.
bool Growth::grows_for(HomeThread& thread) {
    HomeProcess& process = *thread.process;
    if (process.state == HomeProcess::State::native) return grows_for_young(thread);
    if (thread.remote() || process.state != HomeProcess::State::split) return false;
    auto info = trace::signal_info(thread.tid);
    if (!info || !growth_for(process.fragment->space, *info)) return false;
    spawn(grow_down(process, thread, *info));
    return true;
}

// In an unsplit child nothing can grow: it is split, and touches the page again.
bool Growth::grows_for_young(HomeThread& thread) {
    HomeProcess& process = *thread.process;
    auto grows = [](const auto& inherited) { return !inherited.second; };
    if (!process.can_be_split() || !home_.acceptors.reachable()) return false;
    if (std::ranges::none_of(process.inherited_growing, grows)) return false;
    auto info = trace::signal_info(thread.tid);
    if (!info || info->si_code != SEGV_MAPERR) return false;
    auto context = capture_context(thread.tid);
    if (!context) return false;
    auto split = [](Home& home, HomeThread& stopped, ThreadContext at) -> Task<void> {
        co_await home.children.split_stopped(*stopped.process, stopped, at);
    };
    spawn(split(home_, thread, std::move(*context)));
    return true;
}

// The thread is stopped by the signal. It will not see the signal, and touches the page again.
Task<void> Growth::grow_down(HomeProcess& process, HomeThread& thread, siginfo_t info) {
    auto guard = co_await home_.metadata.lock();
    std::shared_ptr<Fragment> fragment = process.fragment;
    pid_t tid = thread.tid;
    const bool grown = co_await home_.layouts.changes.grow_down(fragment, info);
    if (!grown) {
        trace::resume(tid, SIGSEGV);
        co_return;
    }
    guard.release();
    if (home_.find_thread(fragment->pid(), tid) == &thread) co_await go_on_after(thread, SIGSEGV);
}

bool Growth::meets_growth(Fragment& fragment, Address at) {
    const Mapping* above = fragment.space.find_from(at);
    if (!above || !above->grows_down || above->main_stack) return false;
    spawn(note_growth(fragment.shared_from_this(), at));
    return true;
}

Task<void> Growth::note_growth(std::shared_ptr<Fragment> fragment, Address at) {
    auto guard = co_await home_.metadata.lock();
    const Mapping* above = fragment->space.find_from(at);
    auto maps = read_maps(fragment->pid());
    const HomeProcess* process = home_.find_process(fragment->pid());
    const bool lives = process && process->fragment == fragment && maps && above;
    if (lives && above->grows_down && !above->range.contains(at)) {
        const Range grown{at, above->range.begin};
        const bool is_there = std::ranges::any_of(*maps, [&](const MapsEntry& e) {
            return e.range.contains(grown.begin) && e.range.contains(grown.end);
        });
        if (is_there) co_await home_.layouts.changes.note_growth(fragment, grown, above->prot);
    }
    fragment->wake({at, at + page_size});
}

Task<void> Growth::go_on_after(HomeThread& thread, int signal) {
    HomeProcess& process = *thread.process;
    const uint64_t bit = 1ULL << (signal - 1);
    auto known = process.fault_actions.find(signal);
    FaultRepair repair;
    if (known != process.fault_actions.end()) {
        const uint64_t caught = trace::signal_set(process.pid, "SigCgt:");
        repair = repair_after_fault({known->second, std::nullopt}, caught);
    }
    std::optional<ThreadContext> context;
    if (repair.action) {
        if (auto now = capture_context(thread.tid)) context = std::move(*now);
    }
    if (!context || !home_.stops.divert(thread, *context)) {
        trace::resume(thread.tid);
        co_return;
    }
    if (repair.block) context->signal_mask |= bit;
    context->regs.orig_rax = ~0UL;
    const SignalAction action = known->second;
    std::shared_ptr<StubThread> stub = thread.stub;
    {
        auto guard = co_await stub->lock();
        auto changing = co_await home_.signal_actions.actions_of(process).lock();
        co_await set_kernel_action(*stub, action);
    }
    if (stub->dead()) co_return;
    thread.masked = false;
    co_await home_.stops.go_on(thread, *context);
}

bool Growth::meets_end_of_file(HomeThread& thread) {
    HomeProcess& process = *thread.process;
    if (thread.remote() || process.state != HomeProcess::State::split) return false;
    auto info = trace::signal_info(thread.tid);
    if (!info || !home_.pager.absent.absent_page(*process.fragment, *info)) return false;
    spawn(bus_error(process.fragment, thread.tid, *info));
    return true;
}

// The thread is stopped by the signal.
Task<void> Growth::bus_error(std::shared_ptr<Fragment> fragment, pid_t tid, siginfo_t info) {
    bool beyond = co_await home_.pager.absent.is_beyond_end(fragment, info, static_cast<Tid>(tid));
    auto it = home_.threads.find(tid);
    // It may have ended; by exec, another one has got its number.
    if (it == home_.threads.end() || it->second->process->fragment != fragment) co_return;
    if (!beyond) {
        co_await go_on_after(*it->second, SIGBUS);
        co_return;
    }
    trace::set_signal_info(tid, end_of_file_info(info));
    home_.signals.on_signal(*it->second, SIGBUS);
}

}  // namespace gpr::home
