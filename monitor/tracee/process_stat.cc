#include "monitor/tracee/process_stat.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/fd.h"
#include "monitor/tracee/ptrace.h"

namespace gpr {

std::vector<std::string> stat_fields(const std::string& folder) {
    std::ifstream in(folder + "/stat");
    std::string line, field;
    std::getline(in, line);
    size_t name_end = line.rfind(')');
    std::vector<std::string> fields;
    if (name_end == std::string::npos) return fields;
    std::istringstream rest(line.substr(name_end + 1));
    while (rest >> field) fields.push_back(field);
    return fields;
}

pid_t parent_of(pid_t pid) {
    std::vector<std::string> fields = stat_fields(fmt::format("/proc/{}", pid));
    return fields.size() < 2 ? 0 : std::atoi(fields[1].c_str());
}

std::vector<pid_t> descendants_of(pid_t pid) {
    std::multimap<pid_t, pid_t> children;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
        const pid_t child = std::atoi(entry.path().filename().c_str());
        if (child > 0) children.emplace(parent_of(child), child);
    }
    std::vector<pid_t> found{pid};
    for (size_t i = 0; i < found.size(); i++) {
        const auto [first, last] = children.equal_range(found[i]);
        for (auto child = first; child != last; ++child) found.push_back(child->second);
    }
    found.erase(found.begin());
    return found;
}

bool is_being_killed(pid_t pid) {
    constexpr uint64_t sigkill = 1ULL << (SIGKILL - 1);
    constexpr unsigned long exiting = 0x4, signaled = 0x400;  // PF_EXITING, PF_SIGNALED
    constexpr size_t flags = 6;
    if ((trace::signal_set(pid, "SigPnd:") | trace::signal_set(pid, "ShdPnd:")) & sigkill) {
        return true;
    }
    const std::vector<std::string> fields = stat_fields(fmt::format("/proc/{}", pid));
    return fields.size() <= flags ||
           (std::strtoul(fields[flags].c_str(), nullptr, 10) & (exiting | signaled));
}

std::optional<Scheduled> scheduled(pid_t tid) {
    // Read often, so without a stream. Of the fields behind the name none contains a ')'.
    constexpr int processor_field = 37;  // counted from the end of the name
    Fd file(open(fmt::format("/proc/{}/stat", tid).c_str(), O_RDONLY | O_CLOEXEC));
    char text[1024];
    const ssize_t got = file ? read(file.get(), text, sizeof text - 1) : 0;
    if (got <= 0) return std::nullopt;
    text[got] = 0;
    const char* at = std::strrchr(text, ')');
    if (!at || at[1] != ' ') return std::nullopt;
    const char state = at[2];
    for (int i = 0; at && i < processor_field; i++) at = std::strchr(at + 1, ' ');
    if (!at) return std::nullopt;
    return Scheduled{state, std::atoi(at)};
}

bool main_has_signals(pid_t pid) {
    const uint64_t pending = trace::signal_set(pid, "ShdPnd:");
    return pending != 0 && (pending & ~trace::signal_set(pid, "SigBlk:")) != 0;
}

uint64_t resident_pages(pid_t pid) {
    uint64_t size = 0, resident = 0;
    std::ifstream(fmt::format("/proc/{}/statm", pid)) >> size >> resident;
    return resident;
}

uint64_t limited_pages(pid_t pid, int resource) {
    uint64_t size = 0, resident = 0, shared = 0, text = 0, libraries = 0, data = 0;
    std::ifstream(fmt::format("/proc/{}/statm", pid)) >> size >> resident >> shared >> text >>
        libraries >> data;
    return resource == RLIMIT_AS ? size : data;
}

std::optional<rlimit> limit_of(pid_t pid, int resource) {
    static constexpr std::array<std::string_view, RLIM_NLIMITS> names{
        "Max cpu time",       "Max file size",     "Max data size",         "Max stack size",
        "Max core file size", "Max resident set",  "Max processes",         "Max open files",
        "Max locked memory",  "Max address space", "Max file locks",        "Max pending signals",
        "Max msgqueue size",  "Max nice priority", "Max realtime priority", "Max realtime timeout"};
    rlimit limit{};
    if (prlimit(pid, static_cast<__rlimit_resource>(resource), nullptr, &limit) == 0) return limit;
    if (errno != EPERM) return std::nullopt;
    const std::string_view name = names.at(static_cast<size_t>(resource));
    std::ifstream in(fmt::format("/proc/{}/limits", pid));
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with(name)) continue;
        std::istringstream words(line.substr(name.size()));
        std::string soft, hard;
        words >> soft >> hard;
        auto number = [](const std::string& word) {
            return word == "unlimited" ? RLIM_INFINITY : std::stoull(word);
        };
        return rlimit{number(soft), number(hard)};
    }
    return std::nullopt;
}

// proc_pid_timers(5): CPU-time clocks are 2, 3, and negative ids, which name a process or thread.
bool has_created_cpu_timer(pid_t pid) {
    constexpr std::string_view clock = "ClockID:";
    std::ifstream in(fmt::format("/proc/{}/timers", pid));
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with(clock)) continue;
        const int id = std::atoi(line.c_str() + clock.size());
        if (id < 0 || id == CLOCK_PROCESS_CPUTIME_ID || id == CLOCK_THREAD_CPUTIME_ID) return true;
    }
    return false;
}

std::string descriptor_info(pid_t pid, int fd, std::string_view name) {
    std::ifstream in(fmt::format("/proc/{}/fdinfo/{}", pid, fd));
    for (std::string word, value; in >> word >> value;) {
        if (word == name) return value;
    }
    return {};
}

int descriptor_flags(pid_t pid, int fd) {
    return static_cast<int>(std::strtol(descriptor_info(pid, fd, "flags:").c_str(), nullptr, 8));
}

}  // namespace gpr
