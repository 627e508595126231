// The flat form of a marshalled call, little-endian as x86-64 on both sides:
//
//   u32 number, u32 bounce_size, u32 pieces, u32 in_bytes; u64 args[6];
//   pieces, 28 bytes each; in_bytes.
#include <cstring>
#include <type_traits>

#include "syscall/marshal.h"
#include "syscall/table.h"

namespace gpr {
namespace {

struct Head {
    uint32_t number, bounce_size, pieces, in_bytes;
    uint64_t args[6];
};
static_assert(sizeof(Head) == 64);

struct WirePiece {
    uint32_t offset, capacity, in_length, slot, length_at;
    uint16_t parent, length_piece, unit;
    uint8_t returned, extra;
};
static_assert(sizeof(WirePiece) == 28 && std::is_trivially_copyable_v<WirePiece>);

template <class T>
void append(std::vector<std::byte>& to, const T& value) {
    auto from = std::as_bytes(std::span(&value, 1));
    to.insert(to.end(), from.begin(), from.end());
}

WirePiece to_wire(const Piece& p) {
    return {p.offset,       p.capacity,  p.in_length,
            p.slot,         p.length_at, p.parent,
            p.length_piece, p.unit,      static_cast<uint8_t>(p.returned),
            p.extra};
}

Piece from_wire(const WirePiece& w) {
    Piece p;
    p.offset = w.offset;
    p.capacity = w.capacity;
    p.in_length = w.in_length;
    p.parent = w.parent;
    p.slot = w.slot;
    p.returned = static_cast<Returned>(w.returned);
    p.unit = w.unit;
    p.extra = w.extra;
    p.length_piece = w.length_piece;
    p.length_at = w.length_at;
    return p;
}

// Sums in 64 bits, because the fields have 32.
const char* wrong_with(const Piece& piece, size_t index, const MarshalledCall& call,
                       uint64_t free_from) {
    auto within = [](uint64_t at, uint64_t bytes, uint64_t limit) { return at + bytes <= limit; };
    if (piece.returned > Returned::valued) return "unknown way to return";
    if (piece.offset < free_from) return "pieces overlap";
    if (!within(piece.offset, piece.capacity, call.bounce_size)) return "piece outside the area";
    if (piece.in_length > piece.capacity) return "more bytes than the piece holds";
    if (piece.parent == no_piece) {
        if (piece.slot >= call.args.size()) return "no such argument";
    } else {
        if (piece.parent >= index) return "parent after its child";
        const Piece& parent = call.pieces[piece.parent];
        if (!within(piece.slot, 8, parent.in_length)) return "pointer outside its parent";
    }
    if (piece.returned == Returned::valued) {
        if (piece.length_piece >= call.pieces.size()) return "no such length";
        const Piece& holder = call.pieces[piece.length_piece];
        if (!within(piece.length_at, 4, holder.capacity)) return "length outside its piece";
    } else if (piece.length_piece != no_piece) {
        return "a length for a piece that needs none";
    }
    return nullptr;
}

const char* wrong_with(const MarshalledCall& call) {
    if (find_row(call.number) == nullptr) return "unknown call";
    if (call.bounce_size > bounce_limit) return "bounce area too large";
    uint64_t free_from = 0, in_total = 0;
    for (size_t i = 0; i < call.pieces.size(); ++i) {
        const Piece& piece = call.pieces[i];
        if (const char* wrong = wrong_with(piece, i, call, free_from)) return wrong;
        free_from = uint64_t{piece.offset} + piece.capacity;
        in_total += piece.in_length;
    }
    return in_total == call.in_bytes.size() ? nullptr : "input bytes do not add up";
}

Failure malformed(const char* why) {
    return fail(EPROTO, fmt::format("marshalled syscall: {}", why));
}

}  // namespace

std::vector<std::byte> serialise_call(const MarshalledCall& call) {
    std::vector<std::byte> bytes;
    bytes.reserve(sizeof(Head) + call.pieces.size() * sizeof(WirePiece) + call.in_bytes.size());
    Head head{call.number,
              call.bounce_size,
              static_cast<uint32_t>(call.pieces.size()),
              static_cast<uint32_t>(call.in_bytes.size()),
              {}};
    std::ranges::copy(call.args, head.args);
    append(bytes, head);
    for (const Piece& piece : call.pieces) append(bytes, to_wire(piece));
    bytes.insert(bytes.end(), call.in_bytes.begin(), call.in_bytes.end());
    return bytes;
}

Result<MarshalledCall> parse_call(std::span<const std::byte> bytes) {
    Head head;
    if (bytes.size() < sizeof head) return malformed("cut short");
    std::memcpy(&head, bytes.data(), sizeof head);
    if (head.pieces > piece_limit) return malformed("too many pieces");
    if (head.in_bytes > bounce_limit) return malformed("too many bytes");
    if (bytes.size() != sizeof head + head.pieces * sizeof(WirePiece) + head.in_bytes) {
        return malformed("length does not match its head");
    }
    MarshalledCall call;
    call.number = head.number;
    call.bounce_size = head.bounce_size;
    std::ranges::copy(head.args, call.args.begin());
    const std::byte* at = bytes.data() + sizeof head;
    for (uint32_t i = 0; i < head.pieces; ++i, at += sizeof(WirePiece)) {
        WirePiece piece;
        std::memcpy(&piece, at, sizeof piece);
        call.pieces.push_back(from_wire(piece));
    }
    call.in_bytes.assign(at, at + head.in_bytes);
    if (const char* wrong = wrong_with(call)) return malformed(wrong);
    return call;
}

}  // namespace gpr
