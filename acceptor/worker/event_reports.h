// What happens to threads here, reported to home while somebody traces the session
// (docs/decisions/0055-trace.md).
#pragma once

#include <cstdint>
#include <string>

#include "acceptor/worker/part.h"
#include "monitor/node/event_source.h"
#include "monitor/node/page_events.h"
#include "transport/wire.h"

namespace gpr::worker {

class EventReports {
public:
    explicit EventReports(Worker& worker);

    void on_order(const Frame& frame);
    // Home has made a call.
    void note_answer(wire::CallReply::Reader reply);
    // A filter has reported a call.
    void note_call(const RemoteThread& thread, const Notification& n);
    // A thread comes from home.
    void note_crossing(wire::Crossing::Reader crossing);

private:
    void send(const std::string& events);
    [[nodiscard]] int64_t offset_of_clock() const;

    Worker& worker_;
    EventSource source_;
    PageEvents pages_;
};

}  // namespace gpr::worker
