// The real link: a byte stream, served by a loop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/byte_stream.h"
#include "transport/frame_encoder.h"
#include "transport/frame_receiver.h"
#include "transport/keepalive.h"
#include "transport/link.h"
#include "transport/loop.h"
#include "transport/send_queue.h"

namespace gpr {

class StreamLink : public Link {
public:
    // peer_name is used in reasons: "acceptor 10.0.0.7:7711". The receiver may already hold bytes.
    StreamLink(Loop& loop, std::unique_ptr<ByteStream> stream,
               std::unique_ptr<FrameReceiver> receiver, std::string peer_name);
    ~StreamLink() override;

    void send(FrameBuilder& frame, Priority priority) override;
    void hold() override { ++holds_; }
    void release() override;
    [[nodiscard]] uint64_t queued_bytes() const override { return queue_.bytes(); }
    [[nodiscard]] uint64_t unacknowledged_bytes() const override;
    [[nodiscard]] std::chrono::nanoseconds round_trip() const override;
    void close(std::string reason) override;
    [[nodiscard]] const std::string& peer_name() const override { return peer_name_; }

private:
    enum class State {
        open,
        deaf_peer,   // writing failed; reading goes on to the end of what has arrived
        saying_bye,  // nothing more is accepted; what is queued is still sent
        // All is sent; waits for the peer to close, since a reset could destroy our last frames.
        lingering,
        ended,  // on_closed was called, or soon will be
    };

    void receive();
    void on_received(int result);
    // Reads what is available without waiting.
    void read_on();
    // False once the link has ended, or has been destroyed by a handler.
    bool deliver_frames(const std::weak_ptr<void>& alive);
    bool deliver(ReceivedFrame&& frame, const std::weak_ptr<void>& alive);
    void flush_queue();
    void flush_soon();
    void cannot_write(const Error& why);
    [[nodiscard]] bool can_write() const {
        return state_ == State::open || state_ == State::saying_bye;
    }
    [[nodiscard]] bool closing() const {
        return state_ == State::saying_bye || state_ == State::lingering;
    }
    void want_write(bool wanted);
    void on_tick();
    void schedule_tick();
    [[nodiscard]] bool host_answers() const;
    void judge_silent_peer();
    void send_pong(uint64_t id);
    void all_sent();
    void end(Error reason);
    void count_bytes();

    Loop& loop_;
    std::unique_ptr<ByteStream> stream_;
    std::unique_ptr<FrameReceiver> receiver_;
    std::string peer_name_;
    State state_ = State::open;
    Error close_reason_;
    FrameEncoder encoder_;
    SendQueue queue_;
    std::vector<iovec> gathered_;
    int holds_ = 0;
    bool was_queued_ = false;
    bool wants_write_ = false;  // the socket is full
    bool flush_posted_ = false;
    Keepalive keepalive_;
    Loop::TimerId tick_timer_ = 0;
    Loop::TimerId linger_timer_ = 0;
    FrameBuilder control_;
    std::shared_ptr<int> alive_ = std::make_shared<int>(0);
    std::span<std::byte> reception_space_;
    // Last, so that it is unwatched before the stream closes its descriptor.
    Reception reception_;
    Watch write_watch_;
};

}  // namespace gpr
