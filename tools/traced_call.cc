#include "tools/traced_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "syscall/table.h"

namespace gpr {

namespace {

constexpr size_t most_event_bytes = 1 << 20;
// Of linux/errno.h in the kernel's own include folder.
constexpr int64_t restart_sys = 512, restart_nointr = 513, restart_nohand = 514,
                  restart_block = 516;

template <class Value>
Value read(std::string_view bytes) {
    Value value{};
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

}  // namespace

std::optional<TracedEvent> TracedEvent::take(std::string_view& stream, bool& broken) {
    if (stream.size() < sizeof(gpr_trace_event)) return std::nullopt;
    TracedEvent event;
    event.about = read<gpr_trace_event>(stream);
    const size_t size = event.about.size;
    broken = size < sizeof event.about || size > most_event_bytes || size % 8 != 0;
    if (broken || stream.size() < size) return std::nullopt;
    std::string_view rest = stream.substr(sizeof event.about, size - sizeof event.about);
    for (unsigned i = 0; i < event.about.parts; i++) {
        broken = rest.size() < sizeof(gpr_trace_part);
        if (broken) return std::nullopt;
        TracedPart part;
        part.about = read<gpr_trace_part>(rest);
        const size_t padded = (part.about.bytes + 7u) & ~7u;
        rest.remove_prefix(sizeof part.about);
        broken = rest.size() < padded;
        if (broken) return std::nullopt;
        part.bytes = rest.substr(0, part.about.bytes);
        rest.remove_prefix(padded);
        event.parts.push_back(std::move(part));
    }
    stream.remove_prefix(size);
    return event;
}

const TracedPart* TracedCall::part(unsigned argument, unsigned kind, bool at_end) const {
    const auto found = std::ranges::find_if(parts, [&](const TracedPart& each) {
        return each.about.argument == argument && each.about.kind == kind &&
               (each.about.at_end != 0) == at_end && !each.about.missing;
    });
    return found == parts.end() ? nullptr : &*found;
}

bool is_restart(int64_t result) {
    return result == -restart_sys || result == -restart_nointr || result == -restart_nohand ||
           result == -restart_block;
}

std::string call_name(int64_t number) {
    const bool in_table = number >= 0 && number < UINT32_MAX;
    const Row* row = in_table ? find_row(static_cast<uint32_t>(number)) : nullptr;
    return row ? row->name : fmt::format("syscall_{:#x}", number);
}

}  // namespace gpr
