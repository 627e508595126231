#include "monitor/exit_hold.h"

#include <fmt/format.h>

#include <fstream>
#include <string>

namespace gpr {

namespace {

// Between a thread's last stop and what the kernel does then; and how often it is looked again, for
// a thread that does not get to run.
constexpr std::chrono::milliseconds patience{200};
constexpr int most_looks = 50;

bool has_ended(pid_t pid, pid_t tid) {
    std::ifstream in(fmt::format("/proc/{}/task/{}/stat", pid, tid));
    std::string line;
    if (!std::getline(in, line)) return true;
    size_t name_end = line.rfind(')');
    if (name_end == std::string::npos || name_end + 2 >= line.size()) return true;
    char state = line[name_end + 2];
    return state == 'Z' || state == 'X';
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
