#include "monitor/node/usage.h"

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
#include <sstream>
#include <string>
#include <vector>

#include "monitor/tracee/cpu_timers.h"
#include "monitor/tracee/process_stat.h"

namespace gpr {

namespace {

constexpr uint64_t second = 1'000'000'000;

void add_stat(const std::string& folder, Usage& usage) {
    constexpr size_t minflt = 7, majflt = 9, utime = 11;
    std::vector<std::string> fields = stat_fields(folder);
    if (fields.size() <= utime) return;
    auto number = [&](size_t i) { return std::strtoull(fields[i].c_str(), nullptr, 10); };
    usage.user_ns = number(utime) * (second / static_cast<uint64_t>(sysconf(_SC_CLK_TCK)));
    usage.minor_faults = number(minflt);
    usage.major_faults = number(majflt);
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

uint64_t system_time(const Usage& used) {
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

std::optional<UsageCall> of_clock(clockid_t clock) {
    auto name = cpu_clock_name(clock);
    if (!name) return std::nullopt;
    auto of = name->of_thread ? UsageCall::Of::thread : UsageCall::Of::process;
    return UsageCall{of, name->id, 1, sizeof(timespec), name->user_only};
}

}  // namespace

Usage& Usage::operator+=(const Usage& other) {
    uint64_t peaks = peak_bytes + other.peak_bytes;
    join(other);
    peak_bytes = peaks;
    resident.anonymous += other.resident.anonymous;
    resident.file += other.resident.file;
    resident.shared += other.resident.shared;
    return *this;
}

Usage& Usage::join(const Usage& other) {
    total_ns += other.total_ns;
    user_ns += other.user_ns;
    minor_faults += other.minor_faults;
    major_faults += other.major_faults;
    peak_bytes = std::max(peak_bytes, other.peak_bytes);
    return *this;
}

uint64_t cpu_time_of_process(pid_t pid) {
    clockid_t clock;
    timespec t{};
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
    return static_cast<uint64_t>(t.tv_sec) * second + static_cast<uint64_t>(t.tv_nsec);
}

Usage usage_of_process(pid_t pid) {
    Usage used;
    used.total_ns = cpu_time_of_process(pid);
    add_stat(fmt::format("/proc/{}", pid), used);
    return used;
}

Usage usage_of_thread(pid_t pid, pid_t tid) {
    Usage used;
    std::string folder = fmt::format("/proc/{}/task/{}", pid, tid);
    std::ifstream(folder + "/schedstat") >> used.total_ns;
    add_stat(folder, used);
    return used;
}

void add_memory_of(pid_t pid, Usage& usage) {
    std::ifstream in(fmt::format("/proc/{}/status", pid));
    std::string line, name;
    while (std::getline(in, line)) {
        std::istringstream words(line);
        uint64_t kb = 0;
        words >> name >> kb;
        if (name == "VmHWM:") usage.peak_bytes = kb << 10;
        if (name == "RssAnon:") usage.resident.anonymous = kb << 10;
        if (name == "RssFile:") usage.resident.file = kb << 10;
        if (name == "RssShmem:") usage.resident.shared = kb << 10;
    }
}

std::optional<UsageCall> usage_call(uint64_t number, const uint64_t* args) {
    if (number == SYS_getrusage) {
        UsageCall call{UsageCall::Of::process, 0, 1, sizeof(rusage), false, true};
        auto who = static_cast<int>(args[0]);
        if (who == RUSAGE_CHILDREN) call.of = UsageCall::Of::children;
        if (who == RUSAGE_THREAD) call.of = UsageCall::Of::thread;
        return call;
    }
    if (number == SYS_times && args[0] != 0) {
        return UsageCall{UsageCall::Of::process, 0, 0, sizeof(tms)};
    }
    if (number != SYS_clock_gettime) return std::nullopt;
    return of_clock(static_cast<clockid_t>(args[0]));
}

void add_to_rusage(std::span<std::byte> bytes, const Usage& used) {
    auto usage = read_as<rusage>(bytes);
    usage.ru_utime = sum(usage.ru_utime, used.user_ns);
    usage.ru_stime = sum(usage.ru_stime, system_time(used));
    usage.ru_maxrss += static_cast<long>(used.peak_bytes >> 10);
    usage.ru_minflt += static_cast<long>(used.minor_faults);
    usage.ru_majflt += static_cast<long>(used.major_faults);
    write_as(bytes, usage);
}

void add_usage(uint64_t number, const UsageCall& call, std::span<std::byte> result,
               const Usage& used, const Usage& children) {
    if (number == SYS_getrusage) {
        add_to_rusage(result, call.of == UsageCall::Of::children ? children : used);
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
