#include "monitor/home/idle_home.h"

#include "monitor/home/home.h"

namespace gpr::home {

bool IdleHome::nothing_runs() {
    RunningThreads::Counts counts;
    for (const auto& [pid, process] : home_.processes) {
        if (process->rest) continue;
        counts.processes++;
        for (const auto& [tid, thread] : process->threads) {
            (thread->helper ? counts.helpers : counts.threads)++;
        }
    }
    // Helpers that park on a futex are not among those who wait.
    if (home_.call_stops) counts.helpers = 0;
    counts.waiting = home_.notifier->waiting() + home_.pager.faults.faulting();
    return counts.threads > 0 && !running_threads_.any(counts, [this](const auto& each) {
        for (const auto& [pid, process] : home_.processes) {
            if (!process->rest) each(pid);
        }
    });
}

}  // namespace gpr::home
