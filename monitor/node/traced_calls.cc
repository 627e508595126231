#include "monitor/node/traced_calls.h"

#include <sys/user.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/address.h"
#include "syscall/table.h"

namespace gpr {

namespace {

// As in bpf/call_trace.bpf.c.
constexpr size_t most_text_bytes = 1024, most_strings = 32;

gpr_take take_of(const Argument& argument) {
    switch (argument.kind) {
        using enum Kind;
        case none:
        case scalar:
        case fd: return GPR_TAKE_NOTHING;
        case string: return GPR_TAKE_STRING;
        case strings: return GPR_TAKE_STRINGS;
        case iovec: return GPR_TAKE_VECTOR;
        case msghdr: return GPR_TAKE_MESSAGE;
        case sigmask_pair: return GPR_TAKE_FIXED;
        case raw:
        case ioctl:
        case fcntl:
        case prctl: return GPR_TAKE_GUESS;
        case buffer: break;
    }
    switch (argument.extent) {
        using enum Extent;
        case fixed: return GPR_TAKE_FIXED;
        case counted: return GPR_TAKE_COUNTED;
        case bits: return GPR_TAKE_BITS;
        case valued: return GPR_TAKE_VALUED;
    }
    return GPR_TAKE_NOTHING;
}

gpr_traced_argument traced(const Argument& argument) {
    gpr_traced_argument traced{};
    traced.take = take_of(argument);
    const bool known = traced.take != GPR_TAKE_GUESS;
    traced.in = !known || argument.direction != Direction::out;
    traced.out = !known || argument.direction != Direction::in;
    traced.index = argument.index;
    traced.narrow = argument.narrow;
    traced.by_result = argument.returned == Returned::result ||
                       argument.returned == Returned::success ||
                       argument.returned == Returned::positive;
    traced.extra = argument.extra;
    traced.unit = argument.unit;
    if (argument.kind == Kind::sigmask_pair) traced.unit = 16;
    return traced;
}

// Of a call that may give fewer units than there is room for.
bool is_filled_by_result(const Argument& argument) { return argument.returned == Returned::result; }

}  // namespace

TracedCalls traced_calls_of(const gpr_trace_order& order) {
    TracedCalls calls{};
    for (const Row* row : all_rows()) {
        if (row->number >= calls.size()) continue;
        gpr_traced_call& call = calls[row->number];
        bool environment = false;
        for (size_t i = 0; i < row->arguments.size(); i++) {
            const Argument& argument = row->arguments[i];
            call.arguments[i] = traced(argument);
            if (argument.kind == Kind::buffer && !is_filled_by_result(argument) &&
                argument.extent == Extent::counted) {
                call.arguments[i].by_result = 0;
            }
            // The second vector of strings is the environment, of which only the size is shown.
            if (argument.kind == Kind::strings && std::exchange(environment, true)) {
                call.arguments[i].take = GPR_TAKE_COUNT;
            }
        }
    }
    for (size_t number = 0; number < calls.size(); number++) {
        calls[number].wanted = is_wanted(order, number);
    }
    return calls;
}

std::optional<gpr_trace_order> trace_order_from(std::span<const std::byte> bytes) {
    gpr_trace_order order{};
    if (bytes.size() != sizeof order) return std::nullopt;
    std::memcpy(&order, bytes.data(), sizeof order);
    return order;
}

bool are_events(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        gpr_trace_event event{};
        if (bytes.size() < sizeof event) return false;
        std::memcpy(&event, bytes.data(), sizeof event);
        if (event.size < sizeof event || event.size % 8 != 0 || event.size > bytes.size() ||
            event.kind >= GPR_TRACE_KINDS) {
            return false;
        }
        std::span<const std::byte> rest = bytes.subspan(sizeof event, event.size - sizeof event);
        for (unsigned i = 0; i < event.parts; i++) {
            gpr_trace_part part{};
            if (rest.size() < sizeof part) return false;
            std::memcpy(&part, rest.data(), sizeof part);
            const size_t whole = sizeof part + ((part.bytes + 7u) & ~7u);
            if (rest.size() < whole) return false;
            rest = rest.subspan(whole);
        }
        if (!rest.empty()) return false;
        bytes = bytes.subspan(event.size);
    }
    return true;
}

void append_event(std::string& events, gpr_trace_event event, const EventParts& parts) {
    std::string bytes;
    for (EventPart part : parts) {
        part.bytes.resize(std::min<size_t>(part.bytes.size(), GPR_TRACED_BYTES_MAX));
        part.about.bytes = static_cast<uint16_t>(part.bytes.size());
        bytes.append(reinterpret_cast<const char*>(&part.about), sizeof part.about);
        part.bytes.resize((part.bytes.size() + 7) & ~size_t{7});
        bytes += part.bytes;
    }
    event.parts = static_cast<uint16_t>(parts.size());
    event.size = static_cast<uint32_t>(sizeof event + bytes.size());
    events.append(reinterpret_cast<const char*>(&event), sizeof event);
    events += bytes;
}

void append_event(std::string& events, gpr_trace_event event, const std::string& text) {
    EventPart part;
    part.bytes = text;
    part.about.whole = text.size();
    append_event(events, event, EventParts{part});
}

EventParts strings_of_call(const Row& row, const uint64_t* args, const ReadMemory& read) {
    EventParts parts;
    const auto add = [&](size_t argument, size_t index, uint64_t address,
                         gpr_trace_part_kind kind) {
        std::string bytes(most_text_bytes, '\0');
        // Up to the page's end, behind which nothing may be.
        const size_t here = std::min<size_t>(bytes.size(), page_size - address % page_size);
        size_t got = read(address, bytes.data(), here);
        if (got == here && bytes.find('\0') >= here) {
            got += read(address + here, bytes.data() + here, bytes.size() - here);
        }
        const size_t end = bytes.find('\0');
        EventPart part;
        part.about.argument = static_cast<uint8_t>(argument);
        part.about.index = static_cast<uint16_t>(index);
        part.about.kind = static_cast<uint8_t>(kind);
        part.about.missing = got == 0;
        part.about.address = address;
        part.about.whole = end >= got ? ~uint64_t{0} : end;
        bytes.resize(std::min(end, got));
        part.bytes = std::move(bytes);
        parts.push_back(std::move(part));
    };
    bool environment = false;
    for (size_t i = 0; i < row.arguments.size(); i++) {
        const Kind kind = row.arguments[i].kind;
        if (kind == Kind::string && args[i] != 0) add(i, 0, args[i], GPR_PART_STRING);
        if (kind != Kind::strings || std::exchange(environment, true)) continue;
        for (size_t index = 0; index < most_strings; index++) {
            uint64_t one = 0;
            if (read(args[i] + index * sizeof one, &one, sizeof one) != sizeof one || one == 0)
                break;
            add(i, index, one, GPR_PART_ELEMENT);
        }
    }
    return parts;
}

gpr_trace_event call_begun(uint64_t number, const uint64_t* args, uint64_t instruction_pointer) {
    gpr_trace_event event{};
    event.kind = GPR_TRACE_BEGIN;
    event.number = static_cast<int64_t>(number);
    std::copy(args, args + 6, event.args);
    event.ip = instruction_pointer;
    return event;
}

gpr_trace_event thread_crossed(wire::Crossing::Reader crossing, NodeId from, NodeId to) {
    gpr_trace_event event{};
    event.kind = GPR_TRACE_CROSSING;
    event.args[0] = from;
    event.args[1] = to;
    user_regs_struct registers{};
    const auto bytes = crossing.getRegisters();
    std::memcpy(&registers, bytes.begin(), std::min<size_t>(bytes.size(), sizeof registers));
    event.ip = registers.rip;
    return event;
}

uint64_t trace_clock() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace gpr
