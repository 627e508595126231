// The two ends of a marshalled call: into and out of the bounce area at home, and into the
// program's memory at the acceptor.
//
// out_bytes is a sequence of {u32 piece, u32 length, bytes}, sorted by piece. A piece that was sent
// and came back unchanged is left out.
#include <algorithm>
#include <cstring>
#include <optional>

#include "syscall/marshal.h"

namespace gpr {
namespace {

// The kernel's internal restart codes (include/linux/errno.h); they pass through a notification.
constexpr long restart_first = -516, restart_last = -512;

bool was_interrupted(long result) {
    return result == -EINTR || (result >= restart_first && result <= restart_last);
}

bool is_error(long result) { return result < 0 && result >= -4095; }

std::vector<size_t> in_offsets(const MarshalledCall& call) {
    std::vector<size_t> offsets;
    offsets.reserve(call.pieces.size());
    size_t at = 0;
    for (const Piece& piece : call.pieces) {
        offsets.push_back(at);
        at += piece.in_length;
    }
    return offsets;
}

uint64_t bytes_by_result(const Piece& piece, long result) {
    // A result above the capacity is the length that would have been needed (MSG_TRUNC).
    uint64_t most = piece.unit == 0 ? 0 : piece.capacity / piece.unit;
    return std::min(static_cast<uint64_t>(result), most) * piece.unit + piece.extra;
}

// How many bytes of the piece the call has written. `share_left` runs over the elements in order.
uint64_t bytes_returned(const MarshalledCall& call, const Piece& piece, long result,
                        HostileMemory bounce, uint64_t& share_left) {
    bool failed = is_error(result);
    switch (piece.returned) {
        case Returned::nothing: return 0;
        case Returned::always: return piece.capacity;
        case Returned::interrupted: return was_interrupted(result) ? piece.capacity : 0;
        case Returned::success: return failed ? 0 : piece.capacity;
        case Returned::positive: return !failed && result > 0 ? piece.capacity : 0;
        case Returned::result: return failed ? 0 : bytes_by_result(piece, result);
        case Returned::share: {
            uint64_t share = std::min<uint64_t>(share_left, piece.capacity);
            share_left -= share;
            return share;
        }
        case Returned::valued: {
            if (failed) return 0;
            const Piece& holder = call.pieces[piece.length_piece];
            auto length = bounce.get<uint32_t>(holder.offset + piece.length_at);
            return length.at_most(piece.capacity);
        }
    }
    return 0;
}

void append_u32(std::vector<std::byte>& to, uint32_t value) {
    auto at = to.size();
    to.resize(at + sizeof value);
    std::memcpy(to.data() + at, &value, sizeof value);
}

// Pointers into the bounce area mean nothing to the program: restores its own.
void restore_pointers(const MarshalledCall& call, uint16_t parent, std::span<const std::byte> sent,
                      std::span<std::byte> copy) {
    for (const Piece& child : call.pieces) {
        if (child.parent != parent || child.slot + 8 > copy.size()) continue;
        std::memcpy(copy.data() + child.slot, sent.data() + child.slot, 8);
    }
}

std::vector<Range> merged(std::vector<Range> ranges) {
    std::ranges::sort(ranges, {}, &Range::begin);
    std::vector<Range> result;
    for (const Range& range : ranges) {
        if (!result.empty() && range.begin <= result.back().end) {
            result.back().end = std::max(result.back().end, range.end);
        } else {
            result.push_back(range);
        }
    }
    return result;
}

// Writes only the bytes that changed: another thread may be writing what the kernel left alone (the
// fds of a pollfd array). Gaps up to this size lie within one field.
constexpr size_t joined_gap = 3;

void add_differences(std::vector<MemoryWrite>& writes, Address to,
                     std::span<const std::byte> before, std::span<const std::byte> after) {
    size_t i = 0;
    while (i < after.size()) {
        if (i < before.size() && before[i] == after[i]) {
            ++i;
            continue;
        }
        size_t last = i;
        for (size_t j = i; j < after.size() && j - last <= joined_gap; ++j) {
            if (j >= before.size() || before[j] != after[j]) last = j;
        }
        writes.push_back({to + i, after.subspan(i, last + 1 - i)});
        i = last + 1;
    }
}

struct ReturnedPiece {
    uint32_t index;
    std::span<const std::byte> bytes;
};

// Removes the next piece from the front of `rest`.
Result<ReturnedPiece> next_piece(const MarshalledCall& call, std::span<const std::byte>& rest) {
    uint32_t head[2];
    if (rest.size() < sizeof head) return fail(EPROTO, "syscall result: cut short");
    std::memcpy(head, rest.data(), sizeof head);
    rest = rest.subspan(sizeof head);
    auto [index, length] = head;
    if (index >= call.pieces.size()) return fail(EPROTO, "syscall result: no such piece");
    const Piece& piece = call.pieces[index];
    if (piece.returned == Returned::nothing) {
        return fail(EPROTO, "syscall result: bytes for a buffer that is input only");
    }
    if (length > piece.capacity) return fail(EPROTO, "syscall result: more than the buffer holds");
    if (length > rest.size()) return fail(EPROTO, "syscall result: cut short");
    ReturnedPiece result{index, rest.first(length)};
    rest = rest.subspan(length);
    return result;
}

}  // namespace

SyscallArguments place(const MarshalledCall& call, Address bounce, HostileMemory bounce_memory) {
    GPR_ASSERT(bounce_memory.size() >= call.bounce_size);
    SyscallArguments args = call.args;
    size_t taken = 0;
    for (const Piece& piece : call.pieces) {
        auto sent = std::span(call.in_bytes).subspan(taken, piece.in_length);
        bounce_memory.write(piece.offset, sent);
        taken += piece.in_length;
        uint64_t here = bounce.value + piece.offset;
        if (piece.parent == no_piece) {
            args[piece.slot] = here;
        } else {
            // Parents come before their children, so their bytes are in place.
            bounce_memory.put(call.pieces[piece.parent].offset + piece.slot, here);
        }
    }
    return args;
}

std::vector<std::byte> gather(const MarshalledCall& call, long result,
                              HostileMemory bounce_memory) {
    GPR_ASSERT(bounce_memory.size() >= call.bounce_size);
    std::vector<std::byte> out;
    uint64_t share_left = is_error(result) ? 0 : static_cast<uint64_t>(result);
    auto offsets = in_offsets(call);
    for (uint16_t i = 0; i < call.pieces.size(); ++i) {
        const Piece& piece = call.pieces[i];
        uint64_t length = bytes_returned(call, piece, result, bounce_memory, share_left);
        length = std::min<uint64_t>(length, piece.capacity);
        if (length == 0) continue;
        size_t start = out.size();
        append_u32(out, i);
        append_u32(out, static_cast<uint32_t>(length));
        out.resize(out.size() + length);
        bounce_memory.read(piece.offset, std::span(out).last(length));
        if (piece.in_length == 0) continue;
        std::span<const std::byte> sent(call.in_bytes.data() + offsets[i], piece.in_length);
        auto copy = std::span(out).subspan(out.size() - length);
        restore_pointers(call, i, sent, copy);
        if (length <= sent.size() && std::ranges::equal(copy, sent.first(length))) {
            out.resize(start);
        }
    }
    return out;
}

Result<Scattered> scatter(const MarshalledCall& call, std::span<const std::byte> out_bytes) {
    Scattered result;
    auto offsets = in_offsets(call);
    std::optional<uint32_t> previous;
    while (!out_bytes.empty()) {
        GPR_TRY(ReturnedPiece returned, next_piece(call, out_bytes));
        if (previous && returned.index <= *previous) {
            return fail(EPROTO, "syscall result: pieces out of order");
        }
        previous = returned.index;
        const Piece& piece = call.pieces[returned.index];
        std::span<const std::byte> sent(call.in_bytes.data() + offsets[returned.index],
                                        piece.in_length);
        add_differences(result.writes, piece.program, sent, returned.bytes);
    }
    std::vector<Range> exact;
    for (const MemoryWrite& write : result.writes) {
        exact.push_back({write.to, write.to + write.bytes.size()});
    }
    exact = merged(std::move(exact));
    for (const Range& range : exact) {
        result.writable.push_back(range.pages());
        Range inner{range.begin.page_end(), range.end.page()};
        if (!inner.empty()) result.overwritten.push_back(inner);
    }
    result.writable = merged(std::move(result.writable));
    return result;
}

}  // namespace gpr
