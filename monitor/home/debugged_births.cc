#include "monitor/home/debugged_births.h"

#include <csignal>
#include <utility>

#include "monitor/home/debugged_traps.h"

namespace gpr::home {

void DebuggedBirths::bear(pid_t child, std::shared_ptr<debug::Debuggee> process) {
    untold_[child] = std::move(process);
}

std::optional<debug::StopReason> DebuggedBirths::on_child(pid_t parents_tid, pid_t child,
                                                          bool shares_memory,
                                                          const DebuggedTraps& traps) {
    if (parents_tid != 0 && shares_memory) {
        sharing_[child] = parents_tid;
        return std::nullopt;
    }
    if (parents_tid == 0) {
        const auto its = sharing_.extract(child);
        if (!its) return std::nullopt;
        parents_tid = its.mapped();
    }
    const auto process = untold_.find(child);
    if (!traps.catches_child(shares_memory) || process == untold_.end()) return std::nullopt;
    debug::StopReason why{debug::StopReason::Kind::signal, parents_tid, SIGTRAP};
    why.fork = {child, shares_memory, false, process->second};
    return why;
}

void DebuggedBirths::told(const debug::StopReason& why) {
    if (!why.fork || why.fork->is_over) return;
    untold_.erase(why.fork->child);
    if (!why.fork->shares_memory) return;
    debug::StopReason over = why;
    over.fork->is_over = true;
    over.fork->process = nullptr;
    put_off_.push_front(std::move(over));
}

bool DebuggedBirths::next(debug::StopReason& why) {
    if (put_off_.empty()) return false;
    why = put_off_.front();
    put_off_.pop_front();
    return true;
}

void DebuggedBirths::release() {
    put_off_.clear();
    sharing_.clear();
    for (const auto& [child, process] : std::exchange(untold_, {})) process->detach();
}

}  // namespace gpr::home
