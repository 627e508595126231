// The connection of somebody who reads what happens in the session: `gpr trace`. It gets events
// (bpf/call_trace_layout.h), one behind the other, until either side ends the connection.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "bpf/call_trace_layout.h"
#include "transport/loop.h"

namespace gpr {

namespace home {
class EventStream;
}  // namespace home

class TraceConnection {
public:
    // Nothing is sent before take(). An error if there is a reader already.
    static Result<std::shared_ptr<TraceConnection>> begin(Loop& loop, home::EventStream& stream,
                                                          const gpr_trace_order& order);
    // Sends what has happened, as long as the reader takes it.
    ~TraceConnection();
    TraceConnection(const TraceConnection&) = delete;
    TraceConnection& operator=(const TraceConnection&) = delete;

    // over: called when the reader has gone and this object may be destroyed.
    void take(Fd fd, std::function<void()> over);

private:
    TraceConnection(Loop& loop, home::EventStream& stream) : loop_(loop), stream_(stream) {}
    bool add(std::string_view events);
    void watch();
    void on_ready(uint32_t events);
    void send();
    void send_the_rest();
    void end();
    [[nodiscard]] size_t unsent() const { return events_.size() - sent_; }

    Loop& loop_;
    home::EventStream& stream_;
    Fd fd_;
    Watch watch_;
    std::string events_;
    size_t sent_ = 0;  // bytes of events_
    bool waits_for_room_ = false;
    std::function<void()> over_;
};

}  // namespace gpr
