#include "acceptor/daemon/daemon_channel.h"

#include <sys/socket.h>

#include <algorithm>

#include "transport/greeting_messages.h"

namespace gpr {
namespace {

Result<> send_frame(int channel, FrameBuilder& frame, int flags) {
    GPR_TRY(const auto bytes, frame_bytes(frame));
    const ssize_t sent = send(channel, bytes.data(), bytes.size(), MSG_NOSIGNAL | flags);
    if (sent != static_cast<ssize_t>(bytes.size())) return fail(errno, "send between processes");
    return {};
}

Result<ReceivedFrame> receive_frame(int channel, int flags) {
    // Room for the largest message would cost more than a look at this one's size.
    const ssize_t size =
        TEMP_FAILURE_RETRY(recv(channel, nullptr, 0, flags | MSG_PEEK | MSG_TRUNC));
    if (size < 0) return fail(errno, "receive between processes");
    std::vector<std::byte> bytes(
        std::min(static_cast<size_t>(size), max_message_bytes + sizeof(FrameHeader)));
    const ssize_t got = TEMP_FAILURE_RETRY(recv(channel, bytes.data(), bytes.size(), flags));
    if (got < 0) return fail(errno, "receive between processes");
    return frame_of(std::span(bytes).first(static_cast<size_t>(got)));
}

}  // namespace

Result<> send_hello(int channel, const Hello& hello) {
    FrameBuilder frame;
    write_hello(hello, frame.message().initHello());
    return send_frame(channel, frame, 0);
}

Result<Hello> receive_hello(int channel) {
    GPR_TRY(const auto frame, receive_frame(channel, MSG_DONTWAIT));
    if (!frame.message().isHello()) return fail(EBADMSG, "not a hello");
    return read_hello(frame.message().getHello());
}

Result<> send_verdict(int channel, const Result<Welcome>& verdict) {
    FrameBuilder frame;
    if (verdict) {
        write_welcome(*verdict, frame.message().initWelcome());
    } else {
        frame.message().initRefuse().setReason(verdict.error().message());
    }
    return send_frame(channel, frame, MSG_DONTWAIT);
}

Result<Welcome> receive_verdict(int channel) {
    GPR_TRY(const auto frame, receive_frame(channel, 0));
    if (frame.message().isRefuse()) return fail(frame.message().getRefuse().getReason().cStr());
    if (!frame.message().isWelcome()) return fail(EBADMSG, "not a welcome");
    return read_welcome(frame.message().getWelcome());
}

}  // namespace gpr
