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

std::string GdbThreads::name_of(pid_t pid, pid_t tid) const {
    return names_process_ ? fmt::format("p{:x}.{:x}", pid, tid) : fmt::format("{:x}", tid);
}

std::optional<ThreadChoice> GdbThreads::parse(std::string_view name) const {
    ThreadChoice choice;
    if (name.starts_with('p')) {
        name.remove_prefix(1);
        const bool only_process = name.find('.') == std::string_view::npos;
        const auto pid = parse_id(take_until(name, '.'));
        if (!pid || (*pid > 0 && !processes_.find(*pid))) return std::nullopt;
        choice.pid = *pid;
        choice.tid = ThreadChoice::all;
        if (only_process) return choice;
    }
    const auto tid = parse_id(name);
    if (!tid) return std::nullopt;
    choice.tid = *tid;
    return choice;
}

bool GdbThreads::exists(pid_t tid) const { return processes_.of_thread(tid) != nullptr; }

const GdbProcesses::One* GdbThreads::chosen_process() const {
    if (const auto* one = processes_.find(chosen_pid_)) return one;
    if (const auto* one = processes_.find(processes_.first())) return one;
    return processes_.all().empty() ? nullptr : &processes_.all().begin()->second;
}

pid_t GdbThreads::chosen() const {
    const auto* one = chosen_process();
    const auto threads = one ? GdbProcesses::threads_of(*one) : std::vector<pid_t>();
    if (threads.empty()) return 0;
    return std::ranges::binary_search(threads, chosen_) ? chosen_ : threads.front();
}

std::string GdbThreads::answer_choice(std::string_view operation) {
    if (operation.empty()) return "E16";
    const auto choice = parse(operation.substr(1));
    if (!choice) return no_such_thread;
    switch (operation.front()) {
        case 'c': continued_ = *choice; return "OK";
        case 'g':
            if (choice->tid <= 0) {
                if (choice->pid > 0) choose(choice->pid, 0);
                return "OK";
            }
            if (const auto* its = processes_.of_thread(choice->tid)) {
                choose(its->process->pid(), choice->tid);
                return "OK";
            }
            return no_such_thread;
        default: return "";
    }
}

std::string GdbThreads::answer_alive(std::string_view name) const {
    const auto choice = parse(name);
    return choice && exists(choice->tid) ? "OK" : no_such_thread;
}

std::string GdbThreads::answer_first_ids() {
    unlisted_.clear();
    for (const auto& [pid, one] : processes_.all()) {
        for (const pid_t tid : GdbProcesses::threads_of(one)) {
            unlisted_.push_back(name_of(pid, tid));
        }
    }
    std::ranges::reverse(unlisted_);
    return answer_next_ids();
}

std::string GdbThreads::answer_next_ids() {
    constexpr size_t longest_name = 24;
    if (unlisted_.empty()) return "l";
    std::string ids;
    while (!unlisted_.empty() && ids.size() + longest_name < most_packet_bytes) {
        ids += (ids.empty() ? "m" : ",") + unlisted_.back();
        unlisted_.pop_back();
    }
    return ids;
}

std::string GdbThreads::answer_description(std::string_view name) const {
    const auto choice = parse(name);
    const auto* one = choice ? processes_.of_thread(choice->tid) : nullptr;
    return one ? to_hex(one->process->place_of(choice->tid)) : no_such_thread;
}

std::string GdbThreads::list() const {
    std::string text = "<?xml version=\"1.0\"?>\n<threads>\n";
    for (const auto& [pid, one] : processes_.all()) {
        for (const pid_t tid : GdbProcesses::threads_of(one)) {
            text += fmt::format("<thread id=\"{}\">{}</thread>\n", name_of(pid, tid),
                                in_xml(one.process->place_of(tid)));
        }
    }
    return text + "</threads>\n";
}

}  // namespace gpr::debug
