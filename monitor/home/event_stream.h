// What happens on all nodes of the session, as one stream of events, for `gpr trace`
// (docs/decisions/0055-trace.md). There is one reader at a time. Nothing waits for it: what it has
// no room for is counted and dropped.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "monitor/home/part.h"
#include "monitor/node/event_source.h"
#include "monitor/node/page_events.h"
#include "transport/frame.h"
#include "transport/wire.h"

namespace gpr {
struct WaitStatus;
}  // namespace gpr

namespace gpr::home {

struct RemoteNode;

class EventStream {
public:
    explicit EventStream(Home& home);

    // Takes events (bpf/call_trace_layout.h). False if it has no room for more.
    using Reader = std::function<bool(std::string_view events)>;
    // An error if there is a reader already.
    Result<> begin(const gpr_trace_order& order, Reader reader);
    void end();
    // It is to report what happens there, too, if somebody reads.
    void on_new_acceptor(const RemoteNode& node) const;
    [[nodiscard]] bool is_read() const { return reader_ != nullptr; }

    // Hands over what has happened here. Called before events that may have been caused by it.
    void flush() { source_.flush(); }
    // After flush(), at the session's end: what is to be read behind everything else.
    [[nodiscard]] std::string last_events();
    // Every message of an acceptor: events from there, a thread that comes home, or a call that
    // home is to make.
    void on_frame(RemoteNode& node, const Frame& frame);

    // A filter has reported a call.
    void note_call(const HomeThread& thread, uint64_t number, const uint64_t* args,
                   uint64_t instruction_pointer);
    // A signal has stopped a thread that is at an acceptor. If it is ignored, nobody else will
    // tell.
    void note_signal(const HomeThread& thread, int signal);
    void note_end(const HomeThread& thread, WaitStatus status);

private:
    void on_events(RemoteNode& node, const Frame& frame);
    void tell_nodes();
    void fill_in_order(FrameBuilder& frame) const;
    void give(std::string_view events);
    std::string lost_events();

    Home& home_;
    Reader reader_;
    EventSource source_;
    PageEvents pages_;
    bool has_room_ = true;
    uint64_t dropped_ = 0;  // since the reader had no room
};

}  // namespace gpr::home
