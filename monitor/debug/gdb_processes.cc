#include "monitor/debug/gdb_processes.h"

#include <algorithm>

namespace gpr::debug {

GdbProcesses::GdbProcesses(Debuggee& first) : first_(first.pid()) {
    all_[first_].process = std::shared_ptr<Debuggee>(std::shared_ptr<void>(), &first);
}

GdbProcesses::One* GdbProcesses::find(pid_t pid) {
    const auto its = all_.find(pid);
    return its == all_.end() ? nullptr : &its->second;
}

const GdbProcesses::One* GdbProcesses::find(pid_t pid) const {
    const auto its = all_.find(pid);
    return its == all_.end() ? nullptr : &its->second;
}

const GdbProcesses::One* GdbProcesses::of_thread(pid_t tid) const {
    for (const auto& [pid, one] : all_) {
        if (std::ranges::binary_search(threads_of(one), tid)) return &one;
    }
    return nullptr;
}

std::vector<pid_t> GdbProcesses::threads_of(const One& one) {
    if (one.is_past()) return {one.process->pid()};
    return one.process->threads();
}

bool GdbProcesses::any_runs() const {
    return std::ranges::any_of(all_, [](const auto& entry) { return entry.second.runs; });
}

void GdbProcesses::add_child(const StopReason::Fork& fork, pid_t parent, pid_t parents_tid) {
    One child;
    child.process = fork.process;
    if (const One* its = find(parent)) {
        child.parent = its->process;
        child.parents_tid = parents_tid;
    }
    if (const auto early = early_.extract(fork.child)) child.untold = early.mapped();
    all_[fork.child] = std::move(child);
}

}  // namespace gpr::debug
