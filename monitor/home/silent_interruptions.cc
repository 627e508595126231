#include "monitor/home/silent_interruptions.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "monitor/home/futexes.h"
#include "monitor/home/home.h"

namespace gpr::home {

void SilentInterruptions::on_birth(HomeProcess& parent, bool in_same_process) {
    parent.has_had_children = parent.has_had_children || !in_same_process;
    if (parent.watches_interruptions || !parent.has_had_children || refused_) return;
    auto is_of_program = [](const auto& entry) { return !entry.second->helper; };
    if (std::ranges::count_if(parent.threads, is_of_program) < 2) return;
    parent.watches_interruptions = true;
    auto watched = watch(parent.pid);
    if (watched) return;
    spdlog::info("signals that process {} ignores may interrupt its calls: {}", parent.pid,
                 watched.error().message());
}

void SilentInterruptions::stop() {
    watch_.reset();
    for (const auto& [pid, process] : home_.processes) {
        const bool watched = std::exchange(process->watches_interruptions, false);
        if (!watched || process->started_remotely) continue;
        auto left = home_.futexes.news().join(pid, pid, StopsAtEnd{});
        if (!left) spdlog::warn("{}", left.error().message());
    }
}

Result<> SilentInterruptions::watch(pid_t pid) {
    if (home_.futexes.news().watched()) {
        return home_.futexes.news().join(pid, pid, StopsAtEnd{.interrupted = true});
    }
    if (!watch_) {
        refused_ = true;
        if (!home_.options.bpf) return fail(EPERM, "BPF is not to be used");
        GPR_TRY(watch_, CallWatch::load());
        refused_ = false;
        watch_->set_elsewhere(WaiterSummary{});  // it is not to report wakes
    }
    return watch_->join(pid, pid, StopsAtEnd{.interrupted = true});
}

}  // namespace gpr::home
