#include "monitor/tracee/process_stat.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

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

}  // namespace gpr
