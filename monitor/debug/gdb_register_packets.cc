#include "monitor/debug/gdb_register_packets.h"

#include <fmt/format.h>

#include <algorithm>

#include "monitor/debug/gdb_packets.h"
#include "monitor/debug/gdb_registers.h"
#include "monitor/debug/gdb_signals.h"

namespace gpr::debug {

namespace {

const char* const refused = "E01";
const char* const bad_packet = "E16";
const char* const no_such_thread = "E03";

std::string read_one(const Registers& registers, std::string_view digits) {
    const auto& numbering = GdbRegisters::of_this_processor();
    const auto number = to_number(digits);
    if (!number || *number >= numbering.all().size()) return bad_packet;
    const auto value = numbering.read(registers, *number);
    return value ? to_hex(*value) : std::string(2 * numbering.all()[*number].size, 'x');
}

bool write_one(Registers& registers, std::string_view assignment) {
    const auto number = to_number(take_until(assignment, '='));
    const auto value = from_hex(assignment);
    if (!number || !value) return false;
    return GdbRegisters::of_this_processor().write(registers, *number, *value);
}

// gdb reads these at every stop: sending them at once saves it a round trip.
std::string usual_registers(const Debuggee& debuggee, pid_t tid) {
    constexpr size_t frame_pointer = 6, stack_pointer = 7, program_counter = 16;
    const auto registers = debuggee.registers(tid);
    std::string text;
    if (!registers) return text;
    for (const size_t number : {frame_pointer, stack_pointer, program_counter}) {
        const auto value = GdbRegisters::of_this_processor().read(*registers, number);
        if (value) text += fmt::format("{:02x}:{};", number, to_hex(*value));
    }
    return text;
}

}  // namespace

std::string answer_register_packet(const GdbThreads& threads, std::string_view packet) {
    const GdbProcesses::One* one = threads.chosen_process();
    if (!one) return no_such_thread;
    Debuggee& debuggee = one->shown();
    const pid_t tid = one->is_past() ? one->parents_tid : threads.chosen();
    auto registers = debuggee.registers(tid);
    if (!registers) return no_such_thread;
    const std::string_view rest = packet.substr(1);
    switch (packet.front()) {
        case 'g': return GdbRegisters::of_this_processor().read_all(*registers);
        case 'p': return read_one(*registers, rest);
        case 'G':
            if (!GdbRegisters::of_this_processor().write_all(*registers, rest)) return bad_packet;
            break;
        case 'P':
            if (!write_one(*registers, rest)) return bad_packet;
            break;
        default: return "";
    }
    return !one->is_past() && debuggee.set_registers(tid, *registers) ? "OK" : refused;
}

namespace {

// Why the thread has stopped, apart from its signal.
std::string cause(Debuggee& debuggee, const GdbThreads& threads, const StopReason& why) {
    if (why.kind == StopReason::Kind::exec) {
        return "exec:" + to_hex(debuggee.memory().executable()) + ";";
    }
    if (why.at_breakpoint) return "swbreak:;";
    if (why.call) {
        return fmt::format("syscall_{}:{:x};", why.call->before ? "entry" : "return",
                           why.call->number);
    }
    if (why.fork && why.fork->is_over) return "vforkdone:;";
    if (why.fork) {
        return fmt::format("{}:{};", why.fork->shares_memory ? "vfork" : "fork",
                           threads.name_of(why.fork->child, why.fork->child));
    }
    if (!why.hardware) return "";
    switch (why.hardware->kind) {
        case HardwareBreakpoint::Kind::execution: return "hwbreak:;";
        case HardwareBreakpoint::Kind::writing:
            return fmt::format("watch:{:x};", why.hardware->at.value);
        case HardwareBreakpoint::Kind::access: break;
    }
    return fmt::format("awatch:{:x};", why.hardware->at.value);
}

}  // namespace

std::string stop_reply(Debuggee& debuggee, const GdbThreads& threads, const StopReason& why) {
    const std::string process =
        threads.names_process() ? fmt::format(";process:{:x}", debuggee.pid()) : "";
    switch (why.kind) {
        case StopReason::Kind::exited: return fmt::format("W{:02x}{}", why.value & 0xff, process);
        case StopReason::Kind::killed:
            return fmt::format("X{:02x}{}", to_gdb_signal(why.value), process);
        case StopReason::Kind::signal:
        case StopReason::Kind::exec: break;
    }
    const bool exec = why.kind == StopReason::Kind::exec;
    const auto its = debuggee.threads();
    const bool is_there = std::ranges::binary_search(its, why.tid);
    const pid_t tid = is_there ? why.tid : its.empty() ? threads.chosen() : its.front();
    const int signal = exec ? SIGTRAP : why.value;
    return fmt::format("T{:02x}{}thread:{};{}", to_gdb_signal(signal),
                       usual_registers(debuggee, tid), threads.name_of(debuggee.pid(), tid),
                       cause(debuggee, threads, why));
}

}  // namespace gpr::debug
