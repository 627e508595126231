#include "monitor/node/event_source.h"

#include <poll.h>

#include <chrono>
#include <cstring>
#include <span>
#include <utility>

namespace gpr {

namespace {

constexpr std::chrono::milliseconds between_looks{10};
constexpr size_t most_at_once = 256 << 10;

}  // namespace

EventSource::EventSource(Loop& loop, TracedIds ids, Sink sink)
    : loop_(loop), ids_(ids), sink_(std::move(sink)) {}

void EventSource::begin(const gpr_trace_order& order, int64_t clock_offset_ns) {
    end();
    order_ = order;
    clock_offset_ns_ = static_cast<uint64_t>(clock_offset_ns);
    on_ = true;
    auto calls = CallTrace::load(order, traced_calls_of(order), ids_);
    if (calls) {
        calls_ = std::move(*calls);
        watch_ = loop_.watch(calls_->fd(), POLLIN, [this](uint32_t) { flush(); });
        look_again();
        return;
    }
    gpr_trace_event refused{};
    refused.kind = GPR_TRACE_REFUSED;
    refused.time_ns = now();
    std::string event;
    append_event(event, refused, calls.error().message());
    sink_.give(event);
}

void EventSource::end() {
    if (!std::exchange(on_, false)) return;
    loop_.cancel(timer_);
    watch_.reset();
    calls_.reset();
}

void EventSource::look_again() {
    timer_ = loop_.after(between_looks, [this] {
        flush();
        if (calls_) look_again();
    });
}

uint64_t EventSource::now() const { return trace_clock() + clock_offset_ns_; }

void EventSource::flush() {
    for (bool more = calls_ != nullptr; more && sink_.has_room();) {
        std::string events;
        more = false;
        calls_->fetch([&](std::span<const std::byte> bytes) {
            gpr_trace_event event{};
            std::memcpy(&event, bytes.data(), sizeof event);
            event.time_ns += clock_offset_ns_;
            events.append(reinterpret_cast<const char*>(&event), sizeof event);
            bytes = bytes.subspan(sizeof event);
            events.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
            more = events.size() >= most_at_once;
            return !more;
        });
        if (const uint64_t lost = calls_->take_lost()) {
            gpr_trace_event event{};
            event.kind = GPR_TRACE_LOST;
            event.time_ns = now();
            event.args[0] = lost;
            append_event(events, event);
        }
        if (!events.empty()) sink_.give(events);
    }
}

void EventSource::note(pid_t pid, pid_t tid, gpr_trace_event event, const EventParts& parts) {
    flush();
    event.pid = static_cast<uint32_t>(pid);
    event.tid = static_cast<uint32_t>(tid);
    event.time_ns = now();
    std::string events;
    append_event(events, event, parts);
    sink_.give(events);
}

}  // namespace gpr
