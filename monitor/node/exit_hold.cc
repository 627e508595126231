#include "monitor/node/exit_hold.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "monitor/tracee/process_stat.h"

namespace gpr {

namespace {

// When to look first after the thread's last stop, and the longest pause between looks, for a
// thread that does not get to run.
constexpr std::chrono::milliseconds first_look{1}, longest_pause{200};
constexpr int most_looks = 50;

bool has_ended(pid_t pid, pid_t tid) {
    std::vector<std::string> fields = stat_fields(fmt::format("/proc/{}/task/{}", pid, tid));
    return fields.empty() || fields[0] == "Z" || fields[0] == "X";
}

void look(Loop& loop, pid_t pid, pid_t tid, std::function<void()> then,
          std::chrono::milliseconds pause, int looks) {
    loop.after(pause, [&loop, pid, tid, then = std::move(then), pause, looks] {
        if (looks < most_looks && !has_ended(pid, tid)) {
            look(loop, pid, tid, then, std::min(2 * pause, longest_pause), looks + 1);
        } else {
            then();
        }
    });
}

}  // namespace

Task<uint64_t> take_clear_tid(StubThread& main) {
    HostileMemory told = main.bounce();
    told.put(0, uint64_t{0});
    co_await main.call(SYS_prctl, PR_GET_TID_ADDRESS, Mailbox::bounce_address(main.slot()).value);
    uint64_t at = told.get<uint64_t>().to_pass_on();
    if (at != 0) co_await main.call(SYS_set_tid_address, 0);
    co_return at;
}

void after_end(Loop& loop, pid_t pid, pid_t tid, std::function<void()> then) {
    look(loop, pid, tid, std::move(then), first_look, 1);
}

void release_after_end(Loop& loop, Pager& pager, pid_t pid, pid_t tid, uint64_t hold) {
    after_end(loop, pid, tid, [&pager, hold] { pager.supply.release(hold); });
}

}  // namespace gpr
