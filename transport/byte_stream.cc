#include "transport/byte_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>

#include "transport/keepalive.h"

namespace gpr {

namespace {
// Bytes that the kernel may hold unsent. Together with one piece of a bulk frame under way, an
// urgent frame waits behind about 256 KiB at most.
constexpr int kernel_queue_bytes = 128 << 10;
// Keepalive finds out sooner; a peer that reads nothing for a while, as it gets no processor, is
// given this time as well.
constexpr unsigned tcp_user_timeout_ms =
    std::chrono::duration_cast<std::chrono::milliseconds>(Keepalive::stuck_after).count();

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }
}  // namespace

void ByteStream::finish_writing() { ::shutdown(socket_.get(), SHUT_WR); }

Result<size_t> ByteStream::socket_send(std::span<const iovec> parts) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts.data());
    message.msg_iovlen = std::min<size_t>(parts.size(), IOV_MAX);
    ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
        if (would_block(errno)) return size_t{0};
        return fail(errno, "cannot send");
    }
    bytes_out_ += static_cast<uint64_t>(sent);
    return static_cast<size_t>(sent);
}

Result<ByteStream::Transfer> ByteStream::socket_receive(std::span<std::byte> to) {
    ssize_t got = ::recv(socket_.get(), to.data(), to.size(), MSG_DONTWAIT);
    if (got < 0) {
        if (would_block(errno)) return Transfer{};
        return fail(errno, "cannot receive");
    }
    bytes_in_ += static_cast<uint64_t>(got);
    return Transfer{static_cast<size_t>(got), got == 0};
}

Result<> wait_for_socket(int fd, short events, Deadline deadline) {
    for (;;) {
        auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline -
                                                                 std::chrono::steady_clock::now());
        if (left.count() <= 0) return fail(ETIMEDOUT, "no answer");
        pollfd entry{fd, events, 0};
        int timeout_ms = static_cast<int>(std::min<int64_t>(left.count(), 60'000));
        int ready = ::poll(&entry, 1, timeout_ms);
        if (ready > 0) return {};
        if (ready < 0 && errno != EINTR) return fail(errno, "cannot wait for the socket");
    }
}

void tune_socket(int fd) {
    int family = 0;
    socklen_t length = sizeof(family);
    ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length);
    if (family == AF_UNIX) {
        // Here every byte in the queue counts, including those that the peer has not read yet.
        int bytes = 2 * kernel_queue_bytes;
        ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
        return;
    }
    int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    ::setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kernel_queue_bytes,
                 sizeof(kernel_queue_bytes));
    ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &tcp_user_timeout_ms,
                 sizeof(tcp_user_timeout_ms));
}

}  // namespace gpr
