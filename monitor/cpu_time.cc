#include "monitor/cpu_time.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "monitor/cpu_timers.h"
#include "monitor/process_stat.h"

namespace gpr {

namespace {

constexpr uint64_t second = 1'000'000'000;

uint64_t user_time(const std::string& folder) {
    constexpr size_t utime = 11;
    std::vector<std::string> fields = stat_fields(folder);
    if (fields.size() <= utime) return 0;
    uint64_t ticks = std::strtoull(fields[utime].c_str(), nullptr, 10);
    return ticks * (second / static_cast<uint64_t>(sysconf(_SC_CLK_TCK)));
}

template <class T>
T read_as(std::span<const std::byte> from) {
    T value{};
    std::memcpy(&value, from.data(), std::min(sizeof value, from.size()));
    return value;
}

template <class T>
void write_as(std::span<std::byte> to, const T& value) {
    std::memcpy(to.data(), &value, std::min(sizeof value, to.size()));
}

uint64_t system_time(const CpuTime& used) {
    return used.total_ns - std::min(used.total_ns, used.user_ns);
}

timeval sum(const timeval& a, uint64_t ns) {
    auto us = static_cast<uint64_t>(a.tv_sec) * 1'000'000 + static_cast<uint64_t>(a.tv_usec);
    us += ns / 1000;
    return {static_cast<time_t>(us / 1'000'000), static_cast<suseconds_t>(us % 1'000'000)};
}

clock_t ticks(uint64_t ns) {
    return static_cast<clock_t>(ns / (second / static_cast<uint64_t>(sysconf(_SC_CLK_TCK))));
}

std::optional<CpuTimeCall> of_clock(clockid_t clock) {
    auto name = cpu_clock_name(clock);
    if (!name) return std::nullopt;
    auto of = name->of_thread ? CpuTimeCall::Of::thread : CpuTimeCall::Of::process;
    return CpuTimeCall{of, name->id, 1, sizeof(timespec), name->user_only};
}

}  // namespace

CpuTime cpu_time_of(pid_t pid) {
    CpuTime used;
    clockid_t clock;
    timespec t{};
    if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &t) == 0) {
        used.total_ns = static_cast<uint64_t>(t.tv_sec) * second + static_cast<uint64_t>(t.tv_nsec);
    }
    used.user_ns = user_time(fmt::format("/proc/{}", pid));
    return used;
}

CpuTime cpu_time_of_thread(pid_t pid, pid_t tid) {
    CpuTime used;
    std::string folder = fmt::format("/proc/{}/task/{}", pid, tid);
    std::ifstream(folder + "/schedstat") >> used.total_ns;
    used.user_ns = user_time(folder);
    return used;
}

std::optional<CpuTimeCall> cpu_time_call(uint64_t number, const uint64_t* args) {
    switch (number) {
        case SYS_getrusage: {
            CpuTimeCall call{CpuTimeCall::Of::process, 0, 1, sizeof(rusage), false};
            auto who = static_cast<int>(args[0]);
            if (who == RUSAGE_CHILDREN) call.of = CpuTimeCall::Of::children;
            if (who == RUSAGE_THREAD) call.of = CpuTimeCall::Of::thread;
            return call;
        }
        case SYS_times:
            if (args[0] == 0) return std::nullopt;
            return CpuTimeCall{CpuTimeCall::Of::process, 0, 0, sizeof(tms), false};
        case SYS_clock_gettime: return of_clock(static_cast<clockid_t>(args[0]));
        default: return std::nullopt;
    }
}

void add_usage(std::span<std::byte> bytes, const CpuTime& used) {
    auto usage = read_as<rusage>(bytes);
    usage.ru_utime = sum(usage.ru_utime, used.user_ns);
    usage.ru_stime = sum(usage.ru_stime, system_time(used));
    write_as(bytes, usage);
}

void add_cpu_time(uint64_t number, const CpuTimeCall& call, std::span<std::byte> result,
                  const CpuTime& used, const CpuTime& children) {
    if (number == SYS_getrusage) {
        add_usage(result, call.of == CpuTimeCall::Of::children ? children : used);
    } else if (number == SYS_times) {
        auto t = read_as<tms>(result);
        t.tms_utime += ticks(used.user_ns);
        t.tms_stime += ticks(system_time(used));
        t.tms_cutime += ticks(children.user_ns);
        t.tms_cstime += ticks(system_time(children));
        write_as(result, t);
    } else {
        auto t = read_as<timespec>(result);
        uint64_t ns =
            static_cast<uint64_t>(t.tv_nsec) + (call.user_only ? used.user_ns : used.total_ns);
        t.tv_sec += static_cast<time_t>(ns / second);
        t.tv_nsec = static_cast<long>(ns % second);
        write_as(result, t);
    }
}

}  // namespace gpr
