#include "monitor/control/trace_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "monitor/home/event_stream.h"

namespace gpr {

namespace {

constexpr size_t most_unsent_bytes = 32 << 20;
constexpr size_t room_again_bytes = 16 << 20;
constexpr size_t sent_bytes_to_drop = 1 << 20;
// At the session's end: how long a reader may take nothing, and how long it may take altogether.
constexpr int end_patience_ms = 2000;
constexpr std::chrono::seconds most_end_time{20};

}  // namespace

Result<std::shared_ptr<TraceConnection>> TraceConnection::begin(Loop& loop,
                                                                home::EventStream& stream,
                                                                const gpr_trace_order& order) {
    std::shared_ptr<TraceConnection> made(new TraceConnection(loop, stream));
    TraceConnection* self = made.get();
    GPR_CHECK(stream.begin(order, [self](std::string_view events) { return self->add(events); }));
    return made;
}

TraceConnection::~TraceConnection() {
    watch_.reset();
    if (fd_) {
        stream_.flush();
        events_ += stream_.last_events();
        send_the_rest();
    }
    stream_.end();
}

void TraceConnection::take(Fd fd, std::function<void()> over) {
    fd_ = std::move(fd);
    over_ = std::move(over);
    send();
}

// Says no from when the queue is full until it is half empty, so that much is lost at once, and
// not a little again and again.
bool TraceConnection::add(std::string_view events) {
    if (waits_for_room_ && unsent() > room_again_bytes) return false;
    waits_for_room_ = false;
    const bool was_empty = unsent() == 0;
    events_ += events;
    if (was_empty && unsent() > 0) send();
    waits_for_room_ = unsent() > most_unsent_bytes;
    return !waits_for_room_;
}

void TraceConnection::watch() {
    if (!fd_) return;
    const uint32_t events = POLLIN | (unsent() == 0 ? 0U : POLLOUT);
    watch_ = loop_.watch(fd_.get(), events, [this](uint32_t ready) { on_ready(ready); });
}

void TraceConnection::on_ready(uint32_t events) {
    if (events & (POLLIN | POLLHUP | POLLERR)) {  // it has nothing to say: this is its end
        std::array<char, 256> bytes{};
        const ssize_t got = recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return end();
    }
    if (events & POLLOUT) send();
}

void TraceConnection::send() {
    if (!fd_) return;
    while (unsent() > 0) {
        const ssize_t sent =
            ::send(fd_.get(), events_.data() + sent_, unsent(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == EAGAIN) break;
        if (sent < 0) return end();
        sent_ += static_cast<size_t>(sent);
    }
    if (sent_ > sent_bytes_to_drop || unsent() == 0) {
        events_.erase(0, sent_);
        sent_ = 0;
    }
    watch();
}

void TraceConnection::send_the_rest() {
    const auto until = std::chrono::steady_clock::now() + most_end_time;
    while (unsent() > 0 && std::chrono::steady_clock::now() < until) {
        pollfd polled{fd_.get(), POLLOUT, 0};
        if (poll(&polled, 1, end_patience_ms) <= 0) return;
        const ssize_t sent =
            ::send(fd_.get(), events_.data() + sent_, unsent(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EINTR && errno != EAGAIN) return;
        sent_ += static_cast<size_t>(std::max<ssize_t>(sent, 0));
    }
}

// over_ runs later, because the stream may be the caller.
void TraceConnection::end() {
    watch_.reset();
    fd_ = Fd();
    if (over_) {
        loop_.after(std::chrono::milliseconds(0), std::exchange(over_, nullptr));
    }
}

}  // namespace gpr
