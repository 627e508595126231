#include "monitor/debug/gdb_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "monitor/debug/gdb_packets.h"

namespace gpr::debug {

namespace {

const char* const no_such_thread = "E03";  // ESRCH

// One part of a name: a number, or -1 for all.
std::optional<pid_t> parse_id(std::string_view digits) {
    if (digits == "-1") return ThreadChoice::all;
    const auto number = to_number(digits);
    if (!number || *number > std::numeric_limits<pid_t>::max()) return std::nullopt;
    return static_cast<pid_t>(*number);
}

std::string in_xml(const std::string& text) {
    std::string safe;
    for (const char byte : text) {
        switch (byte) {
            case '<': safe += "&lt;"; break;
            case '>': safe += "&gt;"; break;
            case '&': safe += "&amp;"; break;
            case '"': safe += "&quot;"; break;
            default: safe += static_cast<unsigned char>(byte) < ' ' ? ' ' : byte;
        }
    }
    return safe;
}

}  // namespace

std::string GdbThreads::name_of(pid_t tid) const {
    return names_process_ ? fmt::format("p{:x}.{:x}", debuggee_.pid(), tid)
                          : fmt::format("{:x}", tid);
}

std::string GdbThreads::name_of_child(pid_t child) {
    return fmt::format("p{:x}.{:x}", child, child);
}

std::optional<ThreadChoice> GdbThreads::parse(std::string_view name) const {
    if (name.starts_with('p')) {
        name.remove_prefix(1);
        const bool only_process = name.find('.') == std::string_view::npos;
        const auto pid = parse_id(take_until(name, '.'));
        if (!pid || (*pid > 0 && *pid != debuggee_.pid())) return std::nullopt;
        if (only_process) return ThreadChoice{ThreadChoice::all};
    }
    const auto tid = parse_id(name);
    if (!tid) return std::nullopt;
    return ThreadChoice{*tid};
}

bool GdbThreads::exists(pid_t tid) const {
    return std::ranges::binary_search(debuggee_.threads(), tid);
}

pid_t GdbThreads::chosen() const {
    const auto threads = debuggee_.threads();
    if (threads.empty()) return 0;
    return std::ranges::binary_search(threads, chosen_) ? chosen_ : threads.front();
}

std::string GdbThreads::answer_choice(std::string_view operation) {
    if (operation.empty()) return "E16";
    const bool to_child =
        child_ != 0 && operation.substr(1).starts_with(fmt::format("p{:x}.", child_));
    if (operation.front() == 'g') means_child_ = to_child;
    if (to_child) return "OK";
    const auto choice = parse(operation.substr(1));
    if (!choice) return no_such_thread;
    switch (operation.front()) {
        case 'c': continued_ = *choice; return "OK";
        case 'g':
            if (choice->tid <= 0) return "OK";
            if (!exists(choice->tid)) return no_such_thread;
            chosen_ = choice->tid;
            return "OK";
        default: return "";
    }
}

std::string GdbThreads::answer_alive(std::string_view name) const {
    const auto choice = parse(name);
    return choice && exists(choice->tid) ? "OK" : no_such_thread;
}

std::string GdbThreads::answer_first_ids() {
    unlisted_ = debuggee_.threads();
    std::ranges::reverse(unlisted_);
    return answer_next_ids();
}

std::string GdbThreads::answer_next_ids() {
    constexpr size_t longest_name = 24;
    if (unlisted_.empty()) return "l";
    std::string ids;
    while (!unlisted_.empty() && ids.size() + longest_name < most_packet_bytes) {
        ids += (ids.empty() ? "m" : ",") + name_of(unlisted_.back());
        unlisted_.pop_back();
    }
    return ids;
}

std::string GdbThreads::answer_description(std::string_view name) const {
    const auto choice = parse(name);
    if (!choice || !exists(choice->tid)) return no_such_thread;
    return to_hex(debuggee_.place_of(choice->tid));
}

std::string GdbThreads::list() const {
    std::string text = "<?xml version=\"1.0\"?>\n<threads>\n";
    for (const pid_t tid : debuggee_.threads()) {
        text += fmt::format("<thread id=\"{}\">{}</thread>\n", name_of(tid),
                            in_xml(debuggee_.place_of(tid)));
    }
    return text + "</threads>\n";
}

}  // namespace gpr::debug
