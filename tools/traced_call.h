// One event of a trace, and a system call as it is put together from events.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/call_trace_layout.h"

namespace gpr {

// What an argument points to, or a piece of it.
struct TracedPart {
    gpr_trace_part about{};
    std::string bytes;
};

struct TracedEvent {
    gpr_trace_event about{};
    std::vector<TracedPart> parts;

    // Takes the first event off `stream`, which may come from another build of gpr. nullopt: it is
    // not complete yet, or, with `broken` set, no event.
    static std::optional<TracedEvent> take(std::string_view& stream, bool& broken);
};

struct TracedCall {
    int64_t number = 0;
    std::array<uint64_t, 6> args{};
    std::vector<TracedPart> parts;
    uint64_t instruction = 0;       // the one after it
    uint64_t began_ns = 0;          // 0: before the trace
    unsigned node = 0;              // where the thread is
    bool forwarded = false;         // made at home although the thread is elsewhere
    int64_t interrupted = 0;        // the kernel's restart code, until it is known how it goes on
    std::optional<int64_t> answer;  // what home has answered, for a thread elsewhere
    uint64_t answered_ns = 0;
    bool is_begun_shown = false;
    std::optional<int64_t> result;  // none: it did not return, or nobody saw it

    [[nodiscard]] const TracedPart* part(unsigned argument, unsigned kind, bool at_end) const;
};

// Whether the kernel says by it that the call is to be repeated; no program sees it.
bool is_restart(int64_t result);
// "read"; for an unknown number "syscall_0x1ff".
std::string call_name(int64_t number);

}  // namespace gpr
