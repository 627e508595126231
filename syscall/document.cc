#include "syscall/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "syscall/request.h"
#include "syscall/table.h"

namespace gpr {
namespace {

const char* direction_word(Direction direction) {
    switch (direction) {
        case Direction::in: return "in";
        case Direction::out: return "out";
        case Direction::inout: return "inout";
    }
    return "?";
}

std::string extent_words(const Argument& a) {
    switch (a.extent) {
        case Extent::fixed: return fmt::format("{}", a.unit);
        case Extent::counted: {
            auto words = fmt::format("arg{}", a.index);
            if (a.unit != 1) words += fmt::format("*{}", a.unit);
            if (a.extra != 0) words += fmt::format("+{}", a.extra);
            return words;
        }
        case Extent::bits: return fmt::format("arg{} bits", a.index);
        case Extent::valued: return fmt::format("*arg{}", a.index);
    }
    return "?";
}

std::string argument_words(const Argument& a) {
    switch (a.kind) {
        case Kind::none: return "";
        case Kind::scalar: return "number";
        case Kind::fd: return "fd";
        case Kind::raw: return "pointer";
        case Kind::buffer:
            return fmt::format("{}[{}]", direction_word(a.direction), extent_words(a));
        case Kind::string: return "string";
        case Kind::strings: return "strings";
        case Kind::iovec:
            return fmt::format("{} iovec[arg{}]", direction_word(a.direction), a.index);
        case Kind::msghdr: return fmt::format("{} msghdr", direction_word(a.direction));
        case Kind::sigmask_pair: return "sigmask";
        case Kind::ioctl: return "by request";
        case Kind::fcntl: return "by command";
        case Kind::prctl: return "by option";
    }
    return "?";
}

std::vector<std::string> arguments_of(const Row& row) {
    std::vector<std::string> words;
    for (const Argument& a : row.arguments) {
        if (a.kind != Kind::none) words.push_back(argument_words(a));
    }
    return words;
}

std::vector<std::string> traits_of(const Row& row) {
    std::vector<std::string> words;
    if (row.blocks()) words.emplace_back("blocks");
    if (row.never_returns()) words.emplace_back("never-returns");
    if (row.changes_fds()) words.emplace_back("changes-fds");
    if (row.has(Trait::maps_memory)) words.emplace_back("maps-memory");
    if (row.home_notify()) words.emplace_back("seen-at-home");
    if (row.by_rule()) words.emplace_back("by-rule");
    return words;
}

std::string exceptions_of(const Row& row) {
    std::map<std::string, std::vector<std::string>> by_verdict;
    for (const ArgumentRule& rule : argument_rules()) {
        if (rule.number != row.number || rule.mask == 0) continue;
        const char* verdict = rule.acceptor == Verdict::allow     ? "native"
                              : rule.acceptor == Verdict::refuse  ? "refused"
                              : rule.acceptor == Verdict::unknown ? "unknown"
                                                                  : "reported";
        auto& named = by_verdict[verdict];
        if (std::ranges::find(named, rule.what) == named.end()) named.emplace_back(rule.what);
    }
    std::string words;
    for (const auto& [verdict, what] : by_verdict) {
        words += fmt::format("{}{}: {}", words.empty() ? "" : "; ", verdict, fmt::join(what, ", "));
    }
    return words;
}

std::string remarks_of(const Row& row) {
    std::string words = row.caveat;
    auto exceptions = exceptions_of(row);
    if (!exceptions.empty()) words += (words.empty() ? "" : "; ") + exceptions;
    return words;
}

void append_requests(std::string& page, const char* title, std::span<const Request> requests) {
    page += fmt::format(
        "\n## {} with a known argument\n\n| code | name | argument |\n|---|---|---|\n", title);
    for (const Request& r : requests) {
        page += fmt::format("| {:#x} | {} | {} |\n", r.code, r.name, argument_words(r.argument));
    }
}

constexpr const char* introduction =
    "# System calls\n\n"
    "Generated from the table in `syscall/`: change it there, then run\n"
    "`meson compile -C BUILD syscalls-doc`. `gpr syscalls` prints the same.\n\n"
    "The class says where a call runs when its thread is at an acceptor:\n\n"
    "- **native**: where the thread is.\n"
    "- **fd-owner**: on the node that owns every fd argument; home unless the acceptor does.\n"
    "- **home**: in the thread's shadow on node 0.\n"
    "- **coherent**: carried out so that every node knows.\n"
    "- **special**: by the supervisor (creation, exec, exit).\n"
    "- **refused**: ENOSYS, as for every number that is not listed.\n\n"
    "Arguments: `in[..]`, `out[..]` and `inout[..]` are buffers carried with the call, with their\n"
    "size in bytes or the argument that gives it; `pointer` is followed through the program's\n"
    "memory. Calls *seen at home* are reported to the supervisor when made on node 0, too.\n"
    "A split rule `sys:NAME` may give those marked *by-rule* to the acceptor.\n\n";

}  // namespace

std::string syscalls_markdown() {
    std::string page = introduction;
    std::map<std::string, int> supported;
    for (const Row* row : all_rows()) ++supported[name_of(row->support)];
    page += fmt::format("{} calls: {} in full, {} in part, {} not.\n\n", all_rows().size(),
                        supported["full"], supported["partial"], supported["none"]);
    page += "| nr | call | class | support | arguments | traits | remarks |\n";
    page += "|---|---|---|---|---|---|---|\n";
    for (const Row* row : all_rows()) {
        page += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", row->number, row->name,
                            name_of(row->place), name_of(row->support),
                            fmt::join(arguments_of(*row), ", "), fmt::join(traits_of(*row), ", "),
                            remarks_of(*row));
    }
    append_requests(page, "ioctl requests", ioctl_requests());
    append_requests(page, "fcntl commands", fcntl_requests());
    append_requests(page, "prctl options", prctl_requests());
    return page;
}

std::string syscalls_json() {
    auto rows = nlohmann::ordered_json::array();
    for (const Row* row : all_rows()) {
        rows.push_back({{"number", row->number},
                        {"name", row->name},
                        {"class", name_of(row->place)},
                        {"support", name_of(row->support)},
                        {"arguments", arguments_of(*row)},
                        {"traits", traits_of(*row)},
                        {"remarks", remarks_of(*row)}});
    }
    return rows.dump(2) + "\n";
}

}  // namespace gpr
