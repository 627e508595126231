#include "monitor/cpu_time.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace gpr {

CpuTime cpu_time_of(pid_t pid) {
    CpuTime used;
    clockid_t clock;
    timespec t{};
    if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &t) == 0) {
        used.total_ns =
            static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
    }
    // proc(5), stat: the name in parentheses may hold anything; utime is the 12th field behind it.
    std::ifstream in(fmt::format("/proc/{}/stat", pid));
    std::string line;
    std::getline(in, line);
    size_t at = line.rfind(')');
    for (int field = 0; field < 12 && at != std::string::npos; field++) at = line.find(' ', at + 1);
    if (at == std::string::npos) return used;
    uint64_t ticks = std::strtoull(line.c_str() + at, nullptr, 10);
    used.user_ns = ticks * (1'000'000'000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK)));
    return used;
}

}  // namespace gpr
