#include "monitor/home/resting_names.h"

#include <utility>

#include "base/log.h"
#include "bpf/name_watch.h"
#include "monitor/home/acceptor_files.h"
#include "monitor/home/home.h"
#include "monitor/home/resting.h"
#include "monitor/home/resting_calls.h"
#include "monitor/home/signals.h"
#include "monitor/tracee/ptrace.h"
#include "syscall/table.h"

namespace gpr::home {

RestingNames::RestingNames(Home& home) : home_(home) {}

RestingNames::~RestingNames() = default;

void RestingNames::begin(std::unique_ptr<NameWatch> watch) {
    watch_ = std::move(watch);
    spdlog::debug("BPF looks at the names of files that processes at rest use");
    renew();
}

void RestingNames::renew() {
    if (!watch_) return;
    auto watched = watch_->watch(home_.acceptor_files.paths().beginnings());
    if (!watched) spdlog::warn("{}", watched.error().message());
}

void RestingNames::join(const HomeProcess& process) {
    if (!watch_) return;
    auto joined = watch_->join(process.pid);
    if (!joined) spdlog::info("{}", joined.error().message());
}

void RestingNames::leave(const HomeProcess& process) {
    if (watch_) watch_->leave(process.pid);
}

// The call's result does not count if the file is an acceptor's. Who has opened one stays where it
// is until the process is split: its descriptor is closed once all threads stand still.
bool RestingNames::takes_call(HomeThread& thread) {
    HomeProcess& process = *thread.process;
    auto regs = trace::registers(thread.tid);
    if (!watch_ || !process.rest || !regs) return false;
    const Notification n = call_of(thread, *regs);
    const Row* row = static_cast<long>(regs->orig_rax) >= 0 ? find_row(n.number) : nullptr;
    if (!row || row->path_argument() < 0) return false;
    if (!cannot_rest_with(home_, process, n)) {
        home_.signals.go_on_waiting(thread);
        trace::resume(thread.tid);
        return true;
    }
    const auto result = static_cast<long>(regs->rax);
    const pid_t pid = process.pid, tid = thread.tid;
    const bool has_opened = row->opens_by_name() && result >= 0;
    if (has_opened) {
        process.rest->opened[tid] = static_cast<int>(result);
        held_.insert(tid);
    } else {
        trace::take_call_back(tid, *regs);
    }
    spawn(home_.resting.split(pid, "calls " + name_of_call(n.number)));
    if (!has_opened) {
        trace::resume(tid);
    } else if (HomeProcess* same = home_.find_process(pid);
               !same || !same->rest || !same->rest->being_split) {
        if (same && same->rest) same->rest->opened.erase(tid);
        let_go(tid);
    }
    return true;
}

void RestingNames::let_go(pid_t tid) {
    if (held_.erase(tid) != 0) trace::resume(tid);
}

void RestingNames::give_up(HomeProcess& process) {
    for (const auto& [tid, descriptor] : std::exchange(process.rest->opened, {})) let_go(tid);
}

void RestingNames::take_back_open(const HomeProcess& process,
                                  std::map<pid_t, ThreadContext>& stopped) {
    for (auto& [tid, context] : stopped) {
        if (process.rest->opened.contains(tid)) trace::take_call_back(context.regs);
    }
}

}  // namespace gpr::home
