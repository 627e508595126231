#include "monitor/home/sleepers.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <fstream>
#include <string>

#include "monitor/home/crossings.h"
#include "monitor/home/home.h"

namespace gpr::home {

namespace {
// Threads that sleep for a moment only need not move.
constexpr uint32_t first_try = 8;

// Whether the thread waits at a futex, without a time limit, in code that runs on every node.
bool sleeps(const HomeProcess& process, pid_t tid) {
    std::string text;
    std::getline(std::ifstream(fmt::format("/proc/{}/syscall", tid)), text);
    long number = -1;
    uint64_t args[6]{}, stack = 0, instruction = 0;
    const int found = std::sscanf(
        text.c_str(), "%ld 0x%lx 0x%lx 0x%lx 0x%lx 0x%lx 0x%lx 0x%lx 0x%lx", &number, &args[0],
        &args[1], &args[2], &args[3], &args[4], &args[5], &stack, &instruction);
    const uint64_t command = args[1] & FUTEX_CMD_MASK;
    if (found != 9 || number != SYS_futex || args[3] != 0) return false;
    if (command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET) return false;
    const Mapping* code = process.fragment->space.find({instruction});
    return code && code->code == CodeClass::neutral;
}

bool may_follow(const HomeThread& thread) {
    return !thread.helper && !thread.remote() && !thread.ends() && !thread.awaited &&
           thread.is_in(HomeThread::Business::none);
}
}  // namespace

void Sleepers::on_kept_back(const HomeProcess& process, NodeId to) {
    if (!home_.has_gravity) return;
    const uint32_t times = ++kept_back_[process.pid];
    if (times < first_try || !std::has_single_bit(times) || !all_sleep(process, to)) return;
    for (const auto& [tid, thread] : process.threads) {
        if (may_follow(*thread)) spawn(follow(process.pid, tid, to));
    }
}

bool Sleepers::all_sleep(const HomeProcess& process, NodeId but_at) const {
    return std::ranges::all_of(process.threads, [&](const auto& entry) {
        const auto& [tid, thread] = entry;
        if (thread->helper || thread->node == but_at) return true;
        return may_follow(*thread) && sleeps(process, tid);
    });
}

// Whoever is awake by now continues there, or comes back, as after any crossing.
Task<void> Sleepers::follow(pid_t pid, pid_t tid, NodeId to) {
    HomeThread* thread = home_.find_thread(pid, tid);
    if (!thread || !thread->process->fragment || !may_follow(*thread)) co_return;
    if (!sleeps(*thread->process, tid)) co_return;
    co_await home_.crossings.leave_at_call(*thread->process, *thread, to, false);
}

}  // namespace gpr::home
