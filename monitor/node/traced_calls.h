// What a trace of calls takes of the memory of each call, from the table of calls; and the form of
// events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bpf/call_trace.h"
#include "mm/page_protocol.h"
#include "transport/wire.h"

namespace gpr {

struct Row;

TracedCalls traced_calls_of(const gpr_trace_order& order);
inline bool is_wanted(const gpr_trace_order& order, uint64_t number) {
    return number < GPR_TRACED_CALLS && (order.wanted[number / 64] >> (number % 64) & 1);
}

// nullopt if these bytes of a peer or a client are no order.
std::optional<gpr_trace_order> trace_order_from(std::span<const std::byte> bytes);
// Whether bytes of a peer are whole events.
bool are_events(std::span<const std::byte> bytes);

struct EventPart {
    gpr_trace_part about{};
    std::string bytes;
};
using EventParts = std::vector<EventPart>;

void append_event(std::string& events, gpr_trace_event event, const EventParts& parts = {});
// With one part, which is a text.
void append_event(std::string& events, gpr_trace_event event, const std::string& text);
// What the arguments of a call that are strings, and vectors of strings, point to. read: returns
// how many bytes it could read.
using ReadMemory = std::function<size_t(uint64_t from, void* to, size_t bytes)>;
EventParts strings_of_call(const Row& row, const uint64_t* args, const ReadMemory& read);
// A call that the filter has reported begins. Without ids and time.
gpr_trace_event call_begun(uint64_t number, const uint64_t* args, uint64_t instruction_pointer);
// A thread has come from one node to another.
gpr_trace_event thread_crossed(wire::Crossing::Reader crossing, NodeId from, NodeId to);
// Since boot, as the events have it.
uint64_t trace_clock();

}  // namespace gpr
