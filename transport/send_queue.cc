#include "transport/send_queue.h"

#include <algorithm>

namespace gpr {

namespace {
constexpr size_t max_recycled = 16;
constexpr size_t max_recycled_bytes = bulk_piece_bytes + 4096;
constexpr size_t max_gathered_parts = 64;
constexpr size_t max_gathered_bytes = 1u << 20;
size_t index(Priority priority) { return static_cast<size_t>(priority); }
}  // namespace

void SendQueue::push(Priority priority, std::span<const iovec> parts, size_t already_sent) {
    GPR_ASSERT(already_sent == 0 || empty());
    Piece piece{recycled()};
    size_t skip = already_sent;
    for (const iovec& part : parts) {
        size_t skipped = std::min(skip, part.iov_len);
        skip -= skipped;
        const auto* data = static_cast<const std::byte*>(part.iov_base);
        piece.data.insert(piece.data.end(), data + skipped, data + part.iov_len);
    }
    bytes_ += piece.data.size();
    if (already_sent > 0) unfinished_ = priority;
    queues_[index(priority)].push_back(std::move(piece));
}

void SendQueue::gather(std::vector<iovec>& parts) const {
    parts.clear();
    size_t total = 0;
    size_t bulk = 0;
    auto add = [&](const Piece& piece, bool is_bulk) {
        if (parts.size() == max_gathered_parts || total >= max_gathered_bytes) return false;
        if (is_bulk && bulk > 0 && bulk + piece.left() > bulk_piece_bytes) return false;
        parts.push_back({const_cast<std::byte*>(piece.data.data()) + piece.sent, piece.left()});
        total += piece.left();
        if (is_bulk) bulk += piece.left();
        return true;
    };
    bool bulk_first = unfinished_ == Priority::bulk;
    if (bulk_first) add(queues_[1].front(), true);
    for (const Piece& piece : queues_[0]) {
        if (!add(piece, false)) return;
    }
    for (size_t i = bulk_first ? 1 : 0; i < queues_[1].size(); ++i) {
        if (!add(queues_[1][i], true)) return;
    }
}

std::deque<SendQueue::Piece>& SendQueue::front_queue() {
    if (unfinished_) return queues_[index(*unfinished_)];
    return queues_[queues_[0].empty() ? 1 : 0];
}

void SendQueue::consume(size_t bytes) {
    bytes_ -= bytes;
    while (bytes > 0) {
        auto& queue = front_queue();
        Piece& piece = queue.front();
        size_t taken = std::min(bytes, piece.left());
        piece.sent += taken;
        bytes -= taken;
        if (piece.left() == 0) {
            recycle(std::move(piece.data));
            queue.pop_front();
            unfinished_.reset();
        } else {
            unfinished_ = &queue == &queues_[0] ? Priority::urgent : Priority::bulk;
        }
    }
}

std::vector<std::byte> SendQueue::recycled() {
    if (recycled_.empty()) return {};
    auto memory = std::move(recycled_.back());
    recycled_.pop_back();
    return memory;
}

void SendQueue::recycle(std::vector<std::byte> memory) {
    if (recycled_.size() == max_recycled || memory.capacity() > max_recycled_bytes) return;
    memory.clear();
    recycled_.push_back(std::move(memory));
}

}  // namespace gpr
