// A link: ordered, reliable frames to one peer, urgent ones first. The session sees only this
// interface.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "transport/frame.h"

namespace gpr {

struct LinkStats {
    uint64_t bytes_in = 0;  // as the socket counts them, including encryption
    uint64_t bytes_out = 0;
    uint64_t frames_in = 0;
    uint64_t frames_out = 0;
};

class Link {
public:
    using FrameHandler = std::function<void(ReceivedFrame&&)>;
    using ClosedHandler = std::function<void(const Error& reason)>;
    using DrainedHandler = std::function<void()>;

    Link() = default;
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;
    virtual ~Link() = default;

    // Called for session frames only. Set it before the loop runs. Both handlers may destroy the
    // link.
    void on_frame(FrameHandler handler) { frame_handler_ = std::move(handler); }
    // Called once, from the loop and never from inside send(): the peer is gone (the reason names
    // it), broke the protocol, or said bye, or our own close() has finished.
    void on_closed(ClosedHandler handler) { closed_handler_ = std::move(handler); }
    // Called at the beginning of every send(). It may send frames of its own, which are sent before
    // that frame. Of several all are called, in this order.
    void before_frame(std::function<void()> handler) {
        if (!before_handler_) {
            before_handler_ = std::move(handler);
            return;
        }
        before_handler_ = [first = std::move(before_handler_), then = std::move(handler)] {
            first();
            then();
        };
    }
    // Called when the queue has become empty: the time to produce more bulk frames.
    void on_drained(DrainedHandler handler) { drained_handler_ = std::move(handler); }

    // Sends at once if nothing is queued. Urgent frames keep their order, bulk frames keep theirs,
    // and urgent frames overtake bulk frames. After the link is closed, frames are dropped
    // silently.
    virtual void send(FrameBuilder& frame, Priority priority) = 0;

    // All frames sent between hold() and release() leave in one write. The calls nest; see
    // LinkBatch, which must not outlive the link.
    virtual void hold() = 0;
    virtual void release() = 0;

    // Bytes accepted by send() and not yet given to the kernel.
    [[nodiscard]] virtual uint64_t queued_bytes() const = 0;

    // Bytes that the kernel has and the peer has not acknowledged; 0 if unknown.
    [[nodiscard]] virtual uint64_t unacknowledged_bytes() const { return 0; }

    // The shortest that its packets took there and back; zero if unknown.
    [[nodiscard]] virtual std::chrono::nanoseconds round_trip() const { return {}; }

    // Sends what is queued, tells the peer why, and ends; on_closed follows.
    virtual void close(std::string reason) = 0;

    [[nodiscard]] virtual const std::string& peer_name() const = 0;
    [[nodiscard]] const LinkStats& stats() const { return stats_; }

protected:
    // Every send() begins with this.
    void prepare_to_send() {
        if (!before_handler_ || preparing_) return;
        preparing_ = true;
        before_handler_();
        preparing_ = false;
    }

    FrameHandler frame_handler_;
    ClosedHandler closed_handler_;
    DrainedHandler drained_handler_;
    LinkStats stats_;

private:
    std::function<void()> before_handler_;
    bool preparing_ = false;
};

class LinkBatch {
public:
    explicit LinkBatch(Link& link) : link_(link) { link_.hold(); }
    ~LinkBatch() { link_.release(); }
    LinkBatch(const LinkBatch&) = delete;
    LinkBatch& operator=(const LinkBatch&) = delete;

private:
    Link& link_;
};

}  // namespace gpr
