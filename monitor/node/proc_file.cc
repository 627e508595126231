#include "monitor/node/proc_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <map>
#include <sstream>
#include <vector>

#include "base/address.h"

namespace gpr {

namespace {

uint64_t less(uint64_t from, uint64_t what) { return from - std::min(from, what); }

uint64_t ticks(uint64_t ns) {
    return ns / (1'000'000'000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK)));
}

uint64_t system_ticks(const Usage& used) { return ticks(less(used.total_ns, used.user_ns)); }

}  // namespace

bool may_show_process(std::string_view path) {
    constexpr std::string_view names[] = {"mem",  "maps",     "cmdline", "environ",
                                          "stat", "children", "wchan"};
    auto in_path = [&](std::string_view name) { return path.find(name) != path.npos; };
    return std::any_of(std::begin(names), std::end(names), in_path);
}

std::optional<ProcFile> proc_file_of(pid_t pid, int fd) {
    char text[PATH_MAX + 1] = {};
    std::string link = fmt::format("/proc/{}/fd/{}", pid, fd);
    if (readlink(link.c_str(), text, PATH_MAX) < 0) return std::nullopt;
    ProcFile file;
    int end = 0;
    if (std::sscanf(text, "/proc/%d/task/%d/%n", &file.process, &file.thread, &end) != 2) {
        end = 0;
        file.thread = 0;
        if (std::sscanf(text, "/proc/%d/%n", &file.process, &end) != 1) return std::nullopt;
    }
    if (end == 0) return std::nullopt;
    file.name = text + end;
    return file;
}

std::string status_with(const std::string& text, const Elsewhere& more) {
    const Resident& there = more.used.resident;
    const std::map<std::string, uint64_t> added{{"VmHWM", more.used.peak_bytes},
                                                {"VmRSS", there.total()},
                                                {"RssAnon", there.anonymous},
                                                {"RssFile", there.file},
                                                {"RssShmem", there.shared}};
    const Elsewhere::Stack stack = more.stack.value_or(Elsewhere::Stack{});
    const std::map<std::string, uint64_t> hidden{{"VmPeak", more.hidden + stack.unused},
                                                 {"VmSize", more.hidden + stack.unused},
                                                 {"VmData", more.hidden_data + stack.as_data}};
    std::map<std::string, uint64_t> known{{"VmLck", more.locked}};
    if (more.stack) known["VmStk"] = stack.used;
    std::istringstream in(text);
    std::string line, shown;
    while (std::getline(in, line)) {
        std::string name = line.substr(0, line.find(':'));
        auto plus = added.find(name), minus = hidden.find(name);
        if (plus != added.end() || minus != hidden.end()) {
            uint64_t kb = std::strtoull(line.c_str() + name.size() + 1, nullptr, 10);
            if (plus != added.end()) kb += plus->second >> 10;
            if (minus != hidden.end()) kb = less(kb, minus->second >> 10);
            line = fmt::format("{}:\t{:8} kB", name, kb);
        }
        auto is = known.find(name);
        if (is != known.end()) line = fmt::format("{}:\t{:8} kB", name, is->second >> 10);
        if (more.state && name == "State") {
            line = "State:\t" + state_in_words(more.state->letter);
        }
        shown += line + '\n';
    }
    return shown;
}

std::string stat_with(const std::string& text, const Elsewhere& more) {
    size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) return text;
    // Numbered from the state, which is the third field.
    enum Field {
        minflt = 7,
        cminflt,
        majflt,
        cmajflt,
        utime,
        stime,
        cutime,
        cstime,
        vsize = 20,
        rss,
        wchan = 32
    };
    std::istringstream in(text.substr(name_end + 1));
    std::vector<std::string> fields;
    for (std::string field; in >> field;) fields.push_back(field);
    if (fields.size() <= rss) return text;
    auto add = [&](Field field, uint64_t what) {
        fields[field] = fmt::format("{}", std::strtoull(fields[field].c_str(), nullptr, 10) + what);
    };
    add(minflt, more.used.minor_faults);
    add(cminflt, more.by_children.minor_faults);
    add(majflt, more.used.major_faults);
    add(cmajflt, more.by_children.major_faults);
    add(utime, ticks(more.used.user_ns));
    add(stime, system_ticks(more.used));
    add(cutime, ticks(more.by_children.user_ns));
    add(cstime, system_ticks(more.by_children));
    add(rss, more.used.resident.total() / page_size);
    uint64_t size = std::strtoull(fields[vsize].c_str(), nullptr, 10);
    uint64_t unused = more.stack ? more.stack->unused : 0;
    fields[vsize] = fmt::format("{}", less(size, more.hidden + unused));
    if (more.state) {
        fields[0] = more.state->letter;
        if (fields.size() > wchan) fields[wchan] = more.state->waits_in == "0" ? "0" : "1";
    }
    return fmt::format("{} {}\n", text.substr(0, name_end + 1), fmt::join(fields, " "));
}

std::string statm_with(const std::string& text, const Elsewhere& more) {
    uint64_t size = 0, resident = 0, shared = 0, code = 0, library = 0, data = 0, dirty = 0;
    std::istringstream in(text);
    if (!(in >> size >> resident >> shared >> code >> library >> data >> dirty)) return text;
    const Resident& there = more.used.resident;
    uint64_t unused = more.stack ? more.stack->unused : 0;
    return fmt::format("{} {} {} {} {} {} {}\n", less(size, (more.hidden + unused) / page_size),
                       resident + there.total() / page_size,
                       shared + (there.file + there.shared) / page_size, code, library,
                       less(data, (more.hidden_data + unused) / page_size), dirty);
}

}  // namespace gpr
