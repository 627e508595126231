#include "monitor/tracee/mapping_flags.h"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "stub/layout.h"

namespace gpr {

namespace {

void note_flag(MappingFlags& of, const std::string& flag) {
    if (flag == "lo") of.locked = true;
    if (flag == "lf") of.locked_on_fault = true;
    if (flag == "gd") of.grows_down = true;
    if (flag == "dc") of.not_forked = true;
    if (flag == "wf") of.wiped_on_fork = true;
    if (flag == "sl") of.sealed = true;
    if (flag == "ht") of.huge_pages = true;
    if (flag == "pf" || flag == "io" || flag == "mm") of.of_device = true;
    if (flag == "um" || flag == "uw" || flag == "ui") of.watched = true;
}

}  // namespace

Result<std::vector<MappingFlags>> read_mapping_flags(pid_t pid) {
    const std::string path = fmt::format("/proc/{}/smaps", pid);
    std::ifstream in(path);
    if (!in) return fail(errno, "cannot open " + path);
    constexpr std::string_view flags = "VmFlags:", key = "ProtectionKey:";
    std::vector<MappingFlags> all;
    for (std::string line; std::getline(in, line);) {
        uint64_t begin = 0, end = 0;
        int name_at = 0;
        // The lines in between are "Name: value" and do not match this format.
        const int got = std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %*4s %*x %*x:%*x %*u %n",
                                    &begin, &end, &name_at);
        if (got == 2) {
            all.push_back({{{begin}, {end}}});
            if (name_at > 0) all.back().name = line.substr(static_cast<size_t>(name_at));
        } else if (!all.empty() && line.starts_with(flags)) {
            std::istringstream words(line.substr(flags.size()));
            for (std::string flag; words >> flag;) note_flag(all.back(), flag);
        } else if (!all.empty() && line.starts_with(key)) {
            all.back().protected_by_key = std::stoul(line.substr(key.size())) != 0;
        }
    }
    return all;
}

std::string what_stays(const std::vector<MappingFlags>& memory) {
    const Range reserved{{GPR_RESERVED_BEGIN}, {GPR_RESERVED_END}};
    for (const MappingFlags& m : memory) {
        const char* what = nullptr;
        if (m.range.overlaps(reserved)) what = "is where gpr puts its own part";
        if (m.sealed) what = "is sealed (mseal), so it cannot be moved";
        if (m.huge_pages) what = "is of huge pages (MAP_HUGETLB)";
        if (m.of_device) what = "is a device's";
        if (m.watched) what = "is watched by a userfaultfd of its own";
        if (m.protected_by_key) what = "has a protection key";
        if (m.name.find("[io_uring]") != std::string::npos) what = "is an io_uring's";
        if (m.name.starts_with("/[aio]")) what = "is of asynchronous I/O (io_setup)";
        const bool kernels = m.name.starts_with("[v") || m.name == "[uprobes]";
        if (!what || kernels) continue;
        return fmt::format("{:#x}{}{} {}", m.range.begin.value, m.name.empty() ? "" : ", ", m.name,
                           what);
    }
    return {};
}

}  // namespace gpr
