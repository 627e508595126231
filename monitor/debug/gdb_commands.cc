// GdbConversation's answers to packets; larger groups of packets are in files of their own.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "monitor/debug/gdb_conversation.h"
#include "monitor/debug/gdb_memory.h"
#include "monitor/debug/gdb_register_packets.h"
#include "monitor/debug/gdb_signals.h"

namespace gpr::debug {

namespace {

const char* const bad_packet = "E16";
const char* const no_such_thread = "E03";
const char* const unknown = "";  // the protocol's answer to an unknown packet

// Removes the name from the packet's beginning, if it is there.
bool take_name(std::string_view& packet, std::string_view name) {
    if (!packet.starts_with(name)) return false;
    packet.remove_prefix(name.size());
    return true;
}

std::optional<pid_t> to_pid(std::string_view digits) {
    const auto number = to_number(digits);
    if (!number || *number > std::numeric_limits<pid_t>::max()) return std::nullopt;
    return static_cast<pid_t>(*number);
}

bool is_for_gpr(std::string_view words) { return words == "gpr" || words.starts_with("gpr "); }

}  // namespace

Task<GdbConversation::Answer> GdbConversation::answer(std::string packet) {
    std::string asked = packet;
    const bool ready = co_await prepare_for(std::move(asked));
    if (phase_ == Phase::over) co_return std::nullopt;
    const GdbProcesses::One* one = threads_.chosen_process();
    if (!ready || !one) co_return no_such_thread;
    std::string rest = packet.empty() ? "" : packet.substr(1);
    DebuggeeMemory& memory = one->shown().memory();
    switch (packet.empty() ? '\0' : packet.front()) {
        case 'm': co_return co_await read_memory(memory, std::move(rest), MemoryForm::hexadecimal);
        case 'x': co_return co_await read_memory(memory, std::move(rest), MemoryForm::binary);
        case 'M': co_return co_await write_memory(memory, std::move(rest), MemoryForm::hexadecimal);
        case 'X': co_return co_await write_memory(memory, std::move(rest), MemoryForm::binary);
        case 'Z': co_return co_await set_breakpoint(std::move(rest), true);
        case 'z': co_return co_await set_breakpoint(std::move(rest), false);
        default: break;
    }
    std::string_view words = packet;
    if (take_name(words, "qRcmd,")) {
        std::string command(words);
        co_return co_await run_command(std::move(command));
    }
    if (take_name(words, "qGetTLSAddr:")) {
        std::string what(words);
        co_return co_await thread_locals_.answer_address(std::move(what));
    }
    co_return answer_at_once(packet);
}

// what: "type,address,kind"; for watchpoints the kind is the length. Read watchpoints (type 3) are
// unknown: gdb then asks for access watchpoints.
Task<std::string> GdbConversation::set_breakpoint(std::string what, bool there) {
    std::string_view words = what;
    const std::string_view type = take_until(words, ',');
    const auto number = to_number(type);
    const auto at = to_number(take_until(words, ','));
    const auto length = to_number(take_until(words, ';'));
    if (!number || *number > 4 || *number == 3) co_return unknown;
    if (!at || !length) co_return bad_packet;
    const GdbProcesses::One* its = threads_.chosen_process();
    if (!its || its->is_past()) co_return "OK";  // the memory that it was for is not the child's
    if (*number != 0) {
        const HardwareBreakpoint one{HardwareBreakpoint::Kind::execution, {*at}, *length};
        co_return set_hardware(*number, one, there);
    }
    if (!told_of_breakpoints_) co_return unknown;
    bool done = co_await its->process->memory().set_breakpoint({*at}, there);
    co_return done ? "OK" : "E0e";
}

// type: as in a packet. one: its kind is not known yet.
std::string GdbConversation::set_hardware(uint64_t type, const HardwareBreakpoint& one,
                                          bool there) {
    using Kind = HardwareBreakpoint::Kind;
    HardwareBreakpoint wanted = one;
    if (type == 1) {
        if (!told_of_hardware_) return unknown;
        wanted.length = 1;
    } else {
        wanted.kind = type == 2 ? Kind::writing : Kind::access;
    }
    const GdbProcesses::One* its = threads_.chosen_process();
    if (its && its->process->traps().set_hardware(wanted, there)) return "OK";
    return "E.gpr: the processor watches four places of up to 8 aligned bytes; delete some, or use "
           "'set can-use-hw-watchpoints 0'";
}

GdbConversation::Answer GdbConversation::answer_at_once(std::string_view packet) {
    if (packet.empty()) return unknown;
    const std::string_view rest = packet.substr(1);
    switch (packet.front()) {
        case '?': {
            const pid_t pid = stop_.pid == 0 ? processes_.first() : stop_.pid;
            const GdbProcesses::One* its = processes_.find(pid);
            if (!its) its = threads_.chosen_process();
            if (threads_.exists(stop_.tid)) threads_.choose(pid, stop_.tid);
            return its ? stop_reply(*its->process, threads_, stop_) : "E03";
        }
        case 'H': return threads_.answer_choice(rest);
        case 'T': return threads_.answer_alive(rest);
        case 'g':
        case 'G':
        case 'p':
        case 'P': return answer_register_packet(threads_, packet);
        case 'c':
        case 'C':
        case 's':
        case 'S': return resume(resumption_of(packet));
        case 'D': return detach_from(rest);
        case 'k':
            while (phase_ != Phase::over) kill(processes_.all().begin()->first);
            return std::nullopt;
        case 'q': return answer_query(packet);
        case 'Q': return answer_setting(packet);
        case 'v': return answer_extended(packet);
        default: return unknown;
    }
}

// process: ";PID", or nothing for all.
GdbConversation::Answer GdbConversation::detach_from(std::string_view process) {
    if (take_name(process, ";")) {
        const auto pid = to_pid(process);
        if (!pid || !processes_.find(*pid)) return bad_packet;
        send("OK");
        detach(*pid);
        return std::nullopt;
    }
    send("OK");
    while (phase_ != Phase::over) detach(processes_.all().begin()->first);
    return std::nullopt;
}

std::string GdbConversation::answer_query(std::string_view packet) {
    if (take_name(packet, "qSupported")) return answer_features(packet);
    if (take_name(packet, "qXfer:")) return transfers_.answer(packet);
    if (take_name(packet, "qSymbol:")) return thread_locals_.answer_symbol(packet);
    if (take_name(packet, "qThreadExtraInfo,")) return threads_.answer_description(packet);
    if (take_name(packet, "qAttached")) {
        const auto pid = to_pid(packet.substr(std::min<size_t>(1, packet.size())));
        const GdbProcesses::One* one = pid ? processes_.find(*pid) : threads_.chosen_process();
        return one && one->process->was_started() ? "0" : "1";
    }
    if (packet == "qfThreadInfo") return threads_.answer_first_ids();
    if (packet == "qsThreadInfo") return threads_.answer_next_ids();
    if (packet == "qC") return current_thread();
    return unknown;
}

std::string GdbConversation::answer_features(std::string_view theirs) {
    std::string ours = fmt::format(
        "PacketSize={:x};QStartNoAckMode+;qXfer:features:read+;qXfer:threads:read+;"
        "qXfer:auxv:read+;qXfer:exec-file:read+;qXfer:siginfo:read+;QPassSignals+;"
        "QProgramSignals+;QCatchSyscalls+;vContSupported+;binary-upload+",
        most_packet_bytes);
    told_of_breakpoints_ = theirs.find("swbreak+") != std::string_view::npos;
    if (told_of_breakpoints_) ours += ";swbreak+";
    told_of_exec_ = theirs.find("exec-events+") != std::string_view::npos;
    if (told_of_exec_) ours += ";exec-events+";
    told_of_hardware_ = theirs.find("hwbreak+") != std::string_view::npos;
    if (told_of_hardware_) ours += ";hwbreak+";
    const bool forks = theirs.find(";fork-events+") != std::string_view::npos;
    const bool vforks = theirs.find("vfork-events+") != std::string_view::npos;
    if (forks) ours += ";fork-events+";
    if (vforks) ours += ";vfork-events+";
    const bool several = theirs.find("multiprocess+") != std::string_view::npos;
    for (auto& [pid, one] : processes_.all()) {
        one.process->traps().catch_forks(forks && several, vforks && several);
    }
    if (several) {
        threads_.name_process_too(true);
        ours += ";multiprocess+";
    }
    return ours;
}

std::string GdbConversation::current_thread() const {
    const GdbProcesses::One* one = threads_.chosen_process();
    return one ? "QC" + threads_.name_of(one->process->pid(), threads_.chosen()) : no_such_thread;
}

std::string GdbConversation::answer_setting(std::string_view packet) {
    if (take_name(packet, "QPassSignals:")) return pass_signals(packet);
    if (take_name(packet, "QCatchSyscalls:")) return catch_calls(packet);
    // Which signals the program may get when the debugger detaches: here always all.
    if (take_name(packet, "QProgramSignals:")) return "OK";
    if (packet != "QStartNoAckMode") return unknown;
    acknowledges_ = false;
    last_sent_.clear();
    return "OK";
}

// what: "0", or "1" with the numbers of the calls; without any, all.
std::string GdbConversation::catch_calls(std::string_view what) {
    CaughtCalls calls;
    const std::string_view on = take_until(what, ';');
    if (on != "0" && on != "1") return bad_packet;
    calls.any = on == "1";
    while (!what.empty()) {
        const auto number = to_number(take_until(what, ';'));
        if (!number || !calls.any) return bad_packet;
        calls.numbers.insert(*number);
    }
    const GdbProcesses::One* one = threads_.chosen_process();
    if (one) one->process->traps().catch_calls(std::move(calls));
    return "OK";
}

std::string GdbConversation::pass_signals(std::string_view numbers) {
    std::set<int> signals;
    while (!numbers.empty()) {
        const auto number = to_number(take_until(numbers, ';'));
        if (!number) return bad_packet;
        const int signal = *number <= 0xff ? from_gdb_signal(static_cast<int>(*number)) : 0;
        if (signal != 0) signals.insert(signal);
    }
    passed_signals_ = std::move(signals);
    return "OK";
}

GdbConversation::Answer GdbConversation::answer_extended(std::string_view packet) {
    if (take_name(packet, "vFile:")) return files_.answer(packet);
    if (packet == "vCont?") return "vCont;c;C;s;S;t";
    if (packet.starts_with("vCont")) return resume(resumption_of(packet));
    if (take_name(packet, "vKill;")) {
        const auto pid = to_pid(packet);
        if (!pid || !processes_.find(*pid)) return bad_packet;
        send("OK");
        kill(*pid);
        return std::nullopt;
    }
    return unknown;  // as for vMustReplyEmpty
}

Task<GdbConversation::Answer> GdbConversation::run_command(std::string words) {
    const auto text = from_hex(words);
    if (!text) co_return bad_packet;
    std::string output = "gpr answers only what begins with 'gpr': try 'monitor gpr'.\n";
    if (is_for_gpr(*text)) {
        std::string command = *text;
        std::shared_ptr<Debuggee> process;
        if (const auto* one = threads_.chosen_process()) process = one->process;
        if (process) output = co_await process->command(std::move(command));
    }
    if (phase_ == Phase::over) co_return std::nullopt;
    constexpr size_t most_bytes = most_packet_bytes / 2 - 1;
    for (size_t at = 0; at < output.size(); at += most_bytes) {
        send("O" + to_hex(std::string_view(output).substr(at, most_bytes)));
    }
    co_return "OK";
}

}  // namespace gpr::debug
