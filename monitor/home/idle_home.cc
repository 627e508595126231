#include "monitor/home/idle_home.h"

#include <utility>

#include "monitor/home/home.h"
#include "monitor/paging/fragment.h"

namespace gpr::home {

namespace {

size_t helpers_of(const HomeProcess& process) {
    if (!process.fragment) return 0;
    return process.fragment->waker() ? 3 : 2;  // page mover, executor
}

}  // namespace

bool IdleHome::nothing_runs() {
    RunningThreads::Counts counts{.threads = home_.supervised_threads()};
    counts.waiting = home_.notifier->waiting() + home_.pager.faults.faulting();
    for (const auto& [pid, process] : home_.processes) {
        if (process->rest) continue;
        counts.processes++;
        counts.helpers += helpers_of(*process);
    }
    return counts.threads > 0 && !running_threads_.any(counts, [this](const auto& each) {
        for (const auto& [pid, process] : home_.processes) {
            if (!process->rest) each(pid);
        }
    });
}

}  // namespace gpr::home
