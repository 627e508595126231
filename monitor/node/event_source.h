// The events of one node for whoever traces the session: what BPF reports of the calls and signals
// here, and what the supervisor adds.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "bpf/call_trace.h"
#include "monitor/node/traced_calls.h"
#include "transport/loop.h"

namespace gpr {

class EventSource {
public:
    struct Sink {
        std::function<void(const std::string& events)> give;
        // While it has none, events stay in the kernel's ring, and are lost when that is full.
        std::function<bool()> has_room;
    };
    EventSource(Loop& loop, TracedIds ids, Sink sink);
    ~EventSource() { end(); }
    EventSource(const EventSource&) = delete;
    EventSource& operator=(const EventSource&) = delete;

    // Says in an event why BPF is refused, if it is. clock_offset_ns: to be added to this host's
    // clock to get home's.
    void begin(const gpr_trace_order& order, int64_t clock_offset_ns);
    void end();
    [[nodiscard]] bool is_on() const { return on_; }
    // While it is on.
    [[nodiscard]] const gpr_trace_order& order() const { return order_; }
    [[nodiscard]] bool wants(uint64_t call) const { return on_ && is_wanted(order_, call); }

    // Hands over what BPF has reported. Called before whatever that may have caused.
    void flush();
    // An event of a thread, which comes after those that BPF has reported.
    void note(pid_t pid, pid_t tid, gpr_trace_event event, const EventParts& parts = {});

private:
    void look_again();
    [[nodiscard]] uint64_t now() const;

    Loop& loop_;
    TracedIds ids_;
    Sink sink_;
    bool on_ = false;
    gpr_trace_order order_{};
    uint64_t clock_offset_ns_ = 0;
    std::unique_ptr<CallTrace> calls_;
    Watch watch_;
    Loop::TimerId timer_ = 0;
};

}  // namespace gpr
