#include "syscall/layout.h"

#include <algorithm>

namespace gpr {
namespace {

// A piece keeps its address modulo this, so that the kernel sees the same alignment as natively:
// O_DIRECT and some drivers accept or refuse a buffer by it.
uint64_t congruence(uint64_t bytes) {
    if (bytes >= page_size) return page_size;
    return bytes >= 512 ? 512 : 16;
}

uint64_t aligned_offset(uint64_t end, Address program, uint64_t modulus) {
    return end + ((program.value - end) & (modulus - 1));
}

bool in_user_space(Address from, uint64_t bytes) {
    return from.value < user_space_end && bytes <= user_space_end - from.value;
}

}  // namespace

Layout::Layout(uint32_t number, const SyscallArguments& args, MemoryReader& memory)
    : call_{number, args, {}, {}, 0}, memory_(memory) {}

bool Layout::fetch(Address from, void* to, size_t bytes) {
    if (!in_user_space(from, bytes)) {
        stay_raw("a pointer lies outside user space");
        return false;
    }
    switch (memory_.read(from, to, bytes)) {
        case ReadOutcome::done: return true;
        case ReadOutcome::missing:
            need_.push_back({Range{from, from + bytes}.pages(), false});
            return false;
        case ReadOutcome::unmapped: stay_raw("a pointer is not mapped"); return false;
    }
    return false;
}

std::optional<uint16_t> Layout::push(Slot slot, Address from, uint64_t bytes) {
    if (bytes > bounce_limit) {
        stay_raw("a buffer is larger than the bounce area");
        return std::nullopt;
    }
    if (!in_user_space(from, bytes)) {
        stay_raw("a pointer lies outside user space");
        return std::nullopt;
    }
    uint64_t offset = aligned_offset(call_.bounce_size, from, congruence(bytes));
    if (offset + bytes > bounce_limit || call_.pieces.size() >= piece_limit) {
        stay_raw("the buffers together are larger than the bounce area");
        return std::nullopt;
    }
    Piece piece;
    piece.program = from;
    piece.offset = static_cast<uint32_t>(offset);
    piece.capacity = static_cast<uint32_t>(bytes);
    piece.parent = slot.parent;
    piece.slot = slot.at;
    call_.bounce_size = static_cast<uint32_t>(offset + bytes);
    call_.pieces.push_back(piece);
    in_offsets_.push_back(call_.in_bytes.size());
    complete_.push_back(false);
    return static_cast<uint16_t>(call_.pieces.size() - 1);
}

std::optional<uint16_t> Layout::add(Slot slot, Address from, uint64_t bytes, Direction direction,
                                    Returned returned) {
    if (stopped()) return std::nullopt;
    auto index = push(slot, from, bytes);
    if (!index) return std::nullopt;
    Piece& added = call_.pieces[*index];
    if (direction != Direction::in) {
        added.returned = returned;
        if (!memory_.writable({from, from + bytes})) {
            stay_raw("a result buffer is not writable");
            return std::nullopt;
        }
    }
    if (direction != Direction::out) {
        size_t at = call_.in_bytes.size();
        call_.in_bytes.resize(at + bytes);
        added.in_length = static_cast<uint32_t>(bytes);
        complete_[*index] = fetch(from, call_.in_bytes.data() + at, bytes);
        if (stopped()) return std::nullopt;
    }
    return index;
}

std::optional<uint16_t> Layout::add_string(Slot slot, Address from) {
    if (stopped()) return std::nullopt;
    // Page by page, because the page after the NUL may not exist.
    std::vector<std::byte> text;
    while (text.size() < string_limit) {
        Address next = from + text.size();
        size_t chunk =
            std::min<uint64_t>((next.page() + page_size) - next, string_limit - text.size());
        size_t at = text.size();
        text.resize(at + chunk);
        if (!fetch(next, text.data() + at, chunk)) return std::nullopt;
        auto nul = std::find(text.begin() + static_cast<ptrdiff_t>(at), text.end(), std::byte{0});
        if (nul == text.end()) continue;
        text.erase(nul + 1, text.end());
        auto index = push(slot, from, text.size());
        if (!index) return std::nullopt;
        call_.pieces[*index].in_length = static_cast<uint32_t>(text.size());
        call_.in_bytes.insert(call_.in_bytes.end(), text.begin(), text.end());
        return index;
    }
    stay_raw("a string is longer than PATH_MAX");
    return std::nullopt;
}

Marshalled Layout::finish() && {
    if (raw_ != nullptr) return RawCall{raw_};
    if (!need_.empty()) return NeedPages{std::move(need_)};
    return std::move(call_);
}

}  // namespace gpr
