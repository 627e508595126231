#include "transport/stream_link.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

#include "transport/texts.h"

namespace gpr {

namespace {
// How much one readable event reads at most before other descriptors have their turn.
constexpr size_t max_bytes_per_event = 2u << 20;
constexpr std::chrono::milliseconds last_words_time{5000};  // for sending what is queued at close()
constexpr std::chrono::milliseconds linger_time{1000};      // for the peer to read it
constexpr size_t gathered_below_bytes = 32u << 10;
}  // namespace

StreamLink::StreamLink(Loop& loop, std::unique_ptr<ByteStream> stream,
                       std::unique_ptr<FrameReceiver> receiver, std::string peer_name)
    : loop_(loop),
      stream_(std::move(stream)),
      receiver_(std::move(receiver)),
      peer_name_(std::move(peer_name)) {
    reception_ = loop_.receive(stream_->fd(), [this](int result) { on_received(result); });
    schedule_tick();
    // Frames may have arrived together with the last frame of the handshake: no event announces
    // them.
    loop_.post([this, alive = std::weak_ptr<void>(alive_)] {
        if (!alive.expired() && deliver_frames(alive)) read_on();
    });
}

StreamLink::~StreamLink() {
    loop_.cancel(tick_timer_);
    loop_.cancel(linger_timer_);
    if (state_ != State::ended) stream_->finish_writing();
}

uint64_t StreamLink::unacknowledged_bytes() const {
    int bytes = 0;
    const bool known = ::ioctl(stream_->fd(), SIOCOUTQ, &bytes) == 0;
    return known ? static_cast<uint64_t>(bytes) : 0;
}

std::chrono::nanoseconds StreamLink::round_trip() const {
    tcp_info info{};
    socklen_t size = sizeof info;
    const bool known = ::getsockopt(stream_->fd(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
    return std::chrono::microseconds(known ? info.tcpi_min_rtt : 0);
}

void StreamLink::send(FrameBuilder& frame, Priority priority) {
    if (state_ != State::open) return;
    prepare_to_send();
    if (auto started = encoder_.start(frame, priority); !started) return end(started.error());
    ++stats_.frames_out;
    // Short bulk frames wait until the loop has nothing else to do.
    bool later = priority == Priority::bulk && frame.raw_size() < gathered_below_bytes;
    bool direct = holds_ == 0 && !later && queue_.empty() && stream_->unsent() == 0;
    while (encoder_.next()) {
        size_t sent = 0;
        if (direct) {
            auto written = stream_->write(encoder_.parts());
            if (!written) return cannot_write(written.error());
            sent = *written;
            count_bytes();
            if (sent < encoder_.size() || stream_->unsent() > 0) {
                direct = false;
                want_write(true);
            }
            if (sent == encoder_.size()) continue;
        }
        queue_.push(priority, encoder_.parts(), sent);
    }
    if (queue_.empty()) return;
    was_queued_ = true;
    if (holds_ > 0 || wants_write_) return;
    if (later && queue_.bytes() < bulk_piece_bytes) return flush_soon();
    flush_queue();
}

void StreamLink::flush_soon() {
    if (std::exchange(flush_posted_, true)) return;
    loop_.post([this, alive = std::weak_ptr<void>(alive_)] {
        if (alive.expired()) return;
        flush_posted_ = false;
        if (holds_ == 0 && !wants_write_ && can_write()) flush_queue();
    });
}

void StreamLink::release() {
    GPR_ASSERT(holds_ > 0);
    if (--holds_ == 0 && !wants_write_ && !queue_.empty() && can_write()) flush_queue();
}

void StreamLink::flush_queue() {
    if (auto flushed = stream_->flush(); !flushed) return end(flushed.error());
    count_bytes();
    while (!queue_.empty() && stream_->unsent() == 0) {
        queue_.gather(gathered_);
        auto written = stream_->write(gathered_);
        count_bytes();
        if (!written) return cannot_write(written.error());
        if (*written == 0) break;
        queue_.consume(*written);
    }
    bool left = !queue_.empty() || stream_->unsent() > 0;
    want_write(left);
    if (left) return;
    if (state_ == State::saying_bye) return all_sent();
    if (std::exchange(was_queued_, false) && drained_handler_) {
        loop_.post([this, alive = std::weak_ptr<void>(alive_)] {
            if (!alive.expired() && state_ == State::open && drained_handler_) drained_handler_();
        });
    }
}

// If a peer has said bye and closed, our next write fails while its reason lies unread in the
// socket.
void StreamLink::cannot_write(const Error& why) {
    want_write(false);
    if (state_ == State::open) state_ = State::deaf_peer;
    loop_.cancel(linger_timer_);
    linger_timer_ = loop_.after(linger_time, [this, why] { end(why); });
}

void StreamLink::want_write(bool wanted) {
    if (wanted == wants_write_) return;
    wants_write_ = wanted;
    if (wanted) {
        write_watch_ = loop_.watch(stream_->fd(), POLLOUT, [this](uint32_t) { flush_queue(); });
    } else {
        write_watch_.reset();
    }
}

void StreamLink::receive() {
    auto space = receiver_->space();
    auto buffer = stream_->receive_buffer(space);
    reception_space_ = buffer.space;
    reception_.start(buffer.space, buffer.owner ? buffer.owner : receiver_->space_owner());
}

void StreamLink::on_received(int result) {
    if (state_ == State::ended) return;
    if (result == -EINTR || result == -EAGAIN) return receive();
    if (result < 0) return end({-result, "cannot receive"});
    if (result == 0) return end({0, "it closed the connection without a word"});
    auto bytes = static_cast<size_t>(result);
    bool plain = stream_->arrived(bytes);
    count_bytes();
    if (plain) {
        receiver_->received(bytes);
        std::weak_ptr<void> alive = alive_;
        if (!deliver_frames(alive)) return;
        if (bytes < reception_space_.size()) return receive();
    }
    read_on();
}

void StreamLink::read_on() {
    std::weak_ptr<void> alive = alive_;
    for (size_t total = 0; total < max_bytes_per_event;) {
        auto space = receiver_->space();
        auto transfer = stream_->read(space);
        count_bytes();
        if (!transfer) return end(transfer.error());
        if (transfer->ended) return end({0, "it closed the connection without a word"});
        if (stream_->unsent() > 0) want_write(true);
        if (transfer->bytes == 0) return receive();
        total += transfer->bytes;
        receiver_->received(transfer->bytes);
        if (!deliver_frames(alive)) return;
        if (transfer->bytes < space.size() && !stream_->has_unread()) return receive();
    }
    // There is more to read, but other handlers of the loop come first.
    loop_.after(std::chrono::nanoseconds(0), [this, alive] {
        if (!alive.expired() && state_ != State::ended) read_on();
    });
}

bool StreamLink::deliver_frames(const std::weak_ptr<void>& alive) {
    while (state_ != State::ended) {
        auto frame = receiver_->next();
        if (!frame) {
            end({0, fmt::format("it broke the protocol: {}", frame.error().what)});
            return false;
        }
        if (!*frame) return true;
        ++stats_.frames_in;
        if (!deliver(std::move(**frame), alive)) return false;
    }
    return false;
}

bool StreamLink::deliver(ReceivedFrame&& frame, const std::weak_ptr<void>& alive) {
    auto message = frame.message();
    switch (message.which()) {
        case wire::Frame::SESSION:
            // After our own close(), what the peer still sends does not matter.
            if (frame_handler_ && !closing()) frame_handler_(std::move(frame));
            return !alive.expired() && state_ != State::ended;
        case wire::Frame::PING: send_pong(message.getPing().getId()); return state_ != State::ended;
        case wire::Frame::PONG: return true;
        case wire::Frame::BYE: {
            std::string why = printable(message.getBye().getReason().cStr());
            end({0, fmt::format("{}{}", peer_said_bye, why.empty() ? "no reason" : why)});
            return false;
        }
        default: end({0, "it broke the protocol: unexpected message"}); return false;
    }
}

void StreamLink::send_pong(uint64_t id) {
    // A peer that pings without reading the answers must not fill our memory.
    if (!queue_.empty()) return;
    control_.restart();
    control_.message().initPong().setId(id);
    send(control_, Priority::urgent);
}

void StreamLink::schedule_tick() {
    tick_timer_ = loop_.after(Keepalive::tick_interval, [this] { on_tick(); });
}

void StreamLink::on_tick() {
    if (state_ != State::open) return;
    auto now = Clock::now().time_since_epoch();
    const uint64_t in = stream_->socket_bytes_in(), out = stream_->socket_bytes_out();
    auto verdict = keepalive_.tick(now, in, out, host_answers());
    if (verdict == Keepalive::Verdict::dead) return judge_silent_peer();
    schedule_tick();
    if (verdict == Keepalive::Verdict::ping && queue_.empty()) {
        control_.restart();
        control_.message().initPing().setId(static_cast<uint64_t>(now.count()));
        send(control_, Priority::urgent);
    }
}

// The peer's kernel acknowledges pings whether or not its process runs. If it has no room for more,
// the kernel here probes, less and less often, and the peer's answers. A socket that is not TCP
// ends with its peer.
bool StreamLink::host_answers() const {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(stream_->fd(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return true;
    const bool is_probed =
        info.tcpi_backoff > 0 && info.tcpi_probes == 0 && info.tcpi_retransmits == 0;
    return is_probed || std::chrono::milliseconds(info.tcpi_last_ack_recv) < Keepalive::dead_after;
}

// If our own loop was held up, bytes of the peer may wait behind this timer: read them first.
void StreamLink::judge_silent_peer() {
    constexpr std::chrono::milliseconds one_more_turn{10};
    tick_timer_ = loop_.after(one_more_turn, [this, before = stream_->socket_bytes_in()] {
        if (stream_->socket_bytes_in() != before) return schedule_tick();
        auto silence = std::chrono::duration<double>(keepalive_.silence()).count();
        end({0, fmt::format("it has been silent for {:.1f} s", silence)});
    });
}

void StreamLink::close(std::string reason) {
    if (state_ != State::open) return;
    control_.restart();
    control_.message().initBye().setReason(reason);
    close_reason_ = {0, std::move(reason)};
    // Bulk, so that it is sent after everything else.
    send(control_, Priority::bulk);
    if (state_ != State::open) return;
    state_ = State::saying_bye;
    linger_timer_ = loop_.after(last_words_time, [this] { end({}); });
    if (queue_.empty() && stream_->unsent() == 0) {
        all_sent();
    } else if (!wants_write_) {
        flush_queue();  // at once, because the owner may destroy this object next
    }
}

void StreamLink::all_sent() {
    state_ = State::lingering;
    loop_.cancel(linger_timer_);
    linger_timer_ = loop_.after(linger_time, [this] { end({}); });
    stream_->finish_writing();
}

void StreamLink::end(Error reason) {
    if (state_ == State::ended) return;
    bool ours = closing();
    state_ = State::ended;
    want_write(false);
    reception_.reset();
    loop_.cancel(tick_timer_);
    loop_.cancel(linger_timer_);
    count_bytes();
    // The peer learns of it at once, even if the owner keeps this object for a while.
    stream_->finish_writing();
    Error told = ours ? close_reason_
                      : Error{reason.code, fmt::format("lost {}: {}", peer_name_, reason.what)};
    loop_.post([this, told = std::move(told), alive = std::weak_ptr<void>(alive_)] {
        if (!alive.expired() && closed_handler_) {
            auto handler = closed_handler_;  // a copy, because the handler may destroy the link
            handler(told);
        }
    });
}

void StreamLink::count_bytes() {
    stats_.bytes_in = stream_->socket_bytes_in();
    stats_.bytes_out = stream_->socket_bytes_out();
}

}  // namespace gpr
