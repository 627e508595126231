// A non-blocking stream of bytes to a peer: a socket, or TLS over one.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/fd.h"
#include "base/result.h"
#include "transport/endpoint.h"

namespace gpr {

class ByteStream {
public:
    struct Transfer {
        size_t bytes = 0;    // 0 and not ended: would block
        bool ended = false;  // the peer sent its last byte
    };

    explicit ByteStream(Fd socket) : socket_(std::move(socket)) {}
    ByteStream(const ByteStream&) = delete;
    ByteStream& operator=(const ByteStream&) = delete;
    virtual ~ByteStream() = default;

    virtual Result<Transfer> read(std::span<std::byte> to) = 0;
    // Whether read() can give bytes although the socket itself may have none.
    [[nodiscard]] virtual bool has_unread() const { return false; }

    // For a loop that receives from the socket itself. `plain` is room for what read() would give.
    // If the socket's bytes can go there as they are, the buffer is `plain`, and arrived() returns
    // true.
    struct ReceiveBuffer {
        std::span<std::byte> space;
        std::shared_ptr<void> owner;  // null: the space that was passed in
    };
    virtual ReceiveBuffer receive_buffer(std::span<std::byte> plain) { return {plain, nullptr}; }
    // `bytes` have come to the receive buffer. True: they are what read() would have given; false:
    // read() now gives what they decode to.
    virtual bool arrived(size_t bytes) {
        bytes_in_ += bytes;
        return true;
    }

    // Returns the number of bytes accepted; 0: would block.
    virtual Result<size_t> write(std::span<const iovec> parts) = 0;
    // Accepted bytes that still wait in this object for the socket; flush() tries again to write
    // them.
    [[nodiscard]] virtual size_t unsent() const { return 0; }
    virtual Result<> flush() { return {}; }

    // Ends writing: the peer reads the end of the stream.
    virtual void finish_writing();

    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] uint64_t socket_bytes_in() const { return bytes_in_; }
    [[nodiscard]] uint64_t socket_bytes_out() const { return bytes_out_; }

protected:
    // sendmsg and recv, which report would-block as 0 bytes and not as an error.
    Result<size_t> socket_send(std::span<const iovec> parts);
    Result<Transfer> socket_receive(std::span<std::byte> to);

    uint64_t bytes_in_ = 0;

private:
    Fd socket_;
    uint64_t bytes_out_ = 0;
};

class PlainStream : public ByteStream {
public:
    using ByteStream::ByteStream;
    Result<Transfer> read(std::span<std::byte> to) override { return socket_receive(to); }
    Result<size_t> write(std::span<const iovec> parts) override { return socket_send(parts); }
};

// Waits for poll events until the deadline; ETIMEDOUT after it.
Result<> wait_for_socket(int fd, short events, Deadline deadline);

// Sets low latency, a short kernel queue (so that urgent frames do not wait long behind it), and
// detection of a dead peer.
void tune_socket(int fd);

}  // namespace gpr
