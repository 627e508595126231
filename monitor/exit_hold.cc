#include "monitor/exit_hold.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "monitor/process_stat.h"

namespace gpr {

namespace {

// Between a thread's last stop and what the kernel does then; and how often it is looked again, for
// a thread that does not get to run.
constexpr std::chrono::milliseconds patience{200};
constexpr int most_looks = 50;

bool has_ended(pid_t pid, pid_t tid) {
    std::vector<std::string> fields = stat_fields(fmt::format("/proc/{}/task/{}", pid, tid));
    return fields.empty() || fields[0] == "Z" || fields[0] == "X";
}

void look_again(Loop& loop, Pager& pager, pid_t pid, pid_t tid, uint64_t hold, int looks) {
    loop.after(patience, [&loop, &pager, pid, tid, hold, looks] {
        if (looks < most_looks && !has_ended(pid, tid)) {
            look_again(loop, pager, pid, tid, hold, looks + 1);
        } else {
            pager.release(hold);
        }
    });
}

}  // namespace

void release_after_end(Loop& loop, Pager& pager, pid_t pid, pid_t tid, uint64_t hold) {
    look_again(loop, pager, pid, tid, hold, 1);
}

}  // namespace gpr
