// Encoded pieces that wait for the socket: urgent before bulk, whole pieces only. Pure code.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "transport/frame.h"

namespace gpr {

class SendQueue {
public:
    [[nodiscard]] bool empty() const { return queues_[0].empty() && queues_[1].empty(); }
    [[nodiscard]] uint64_t bytes() const { return bytes_; }

    // Copies one piece. already_sent > 0: its beginning has been sent, so the rest goes first; the
    // queue must then be empty.
    void push(Priority priority, std::span<const iovec> parts, size_t already_sent = 0);

    // What to write next, in order, with about one piece of bulk at most. Valid until push().
    void gather(std::vector<iovec>& parts) const;
    // The first `bytes` of what gather() returned have been written.
    void consume(size_t bytes);

private:
    struct Piece {
        std::vector<std::byte> data;
        size_t sent = 0;
        [[nodiscard]] size_t left() const { return data.size() - sent; }
    };

    std::vector<std::byte> recycled();
    void recycle(std::vector<std::byte> memory);
    std::deque<Piece>& front_queue();

    std::array<std::deque<Piece>, 2> queues_;  // by priority
    // The priority whose first piece is partly written and must be finished first.
    std::optional<Priority> unfinished_;
    uint64_t bytes_ = 0;
    std::vector<std::vector<std::byte>> recycled_;
};

}  // namespace gpr
