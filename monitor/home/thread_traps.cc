#include "monitor/home/thread_traps.h"

#include <sys/syscall.h>

#include "base/log.h"
#include "monitor/home/home.h"
#include "monitor/home/stops.h"
#include "monitor/node/debug_traps_wire.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::home {

namespace {
constexpr std::chrono::milliseconds looks_every{1};
}  // namespace

DebugTraps ThreadTraps::wanted(pid_t tid) const {
    DebugTraps traps = hardware_.traps();
    const auto its = returns_.find(tid);
    if (its != returns_.end()) traps = hardware_.traps_and(its->second).value_or(traps);
    // Where all code is an acceptor's, threads only visit here, and visits know their calls.
    traps.calls = calls_ && home_.policy.mixed();
    return traps;
}

bool ThreadTraps::stop_at(pid_t tid, Address instruction) {
    if (!hardware_.traps_and(instruction)) return false;
    returns_[tid] = instruction;
    return true;
}

bool ThreadTraps::is_there(pid_t tid, uint8_t hits) const {
    const auto its = returns_.find(tid);
    return its != returns_.end() && hits != 0 && !hardware_.hit(hits);
}

void ThreadTraps::clear() {
    hardware_.clear();
    returns_.clear();
    calls_ = false;
}

void ThreadTraps::on_exec() {
    hardware_.clear();
    returns_.clear();
    given_.clear();
}

void ThreadTraps::on_thread_end(pid_t tid) {
    returns_.erase(tid);
    given_.erase(tid);
}

void ThreadTraps::tell(pid_t pid) const {
    DebugTraps common = hardware_.traps();
    common.calls = calls_;
    const std::vector<uint64_t> numbers = to_numbers(common, returns_);
    FrameBuilder frame;
    auto call = frame.session().initMirror();
    call.setPid(pid);
    call.setNumber(SYS_ptrace);
    auto args = call.initArgs(static_cast<unsigned>(numbers.size()));
    for (unsigned i = 0; i < numbers.size(); i++) args.set(i, numbers[i]);
    home_.acceptors.send(frame);
}

bool ThreadTraps::is_equipped(pid_t tid) const {
    const auto given = given_.find(tid);
    return (given == given_.end() ? DebugTraps{} : given->second) == wanted(tid);
}

void ThreadTraps::equip(pid_t tid) {
    if (is_equipped(tid)) return;
    const DebugTraps traps = wanted(tid);
    auto set = set_debug_traps(tid, traps);
    if (!set && set.error().code != ESRCH) spdlog::warn("{}", set.error().message());
    given_[tid] = traps;
}

Task<void> ThreadTraps::equip_all(pid_t pid) {
    HomeProcess* process = home_.find_process(pid);
    std::vector<pid_t> tids;
    if (process) {
        for (const auto& [tid, thread] : process->threads) {
            if (!thread->helper) tids.push_back(tid);
        }
    }
    for (const pid_t tid : tids) co_await stop_and_equip(pid, tid);
}

Task<void> ThreadTraps::stop_and_equip(pid_t pid, pid_t tid) {
    while (!is_equipped(tid)) {
        HomeThread* thread = home_.find_thread(pid, tid);
        if (!thread || thread->ends()) co_return;
        if (thread->awaited) {
            co_await home_.loop.sleep(looks_every);
            continue;
        }
        trace::interrupt(tid);
        WaitStatus status = co_await home_.stops.next_stop(*thread, true);
        if (status.ended()) co_return;
        if (status.kind == WaitStatus::Kind::trap_stop) {
            equip(tid);
            trace::resume(tid);
        } else {
            home_.on_wait(tid, status);
        }
    }
}

}  // namespace gpr::home
