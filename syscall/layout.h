// Builds the bounce area of a call: private to the marshalling files.
#pragma once

#include <cstring>
#include <optional>

#include "syscall/marshal.h"

namespace gpr {

// Finds pieces, missing pages and the reason to stay raw, in one pass over the arguments.
class Layout {
public:
    Layout(uint32_t number, const SyscallArguments& args, MemoryReader& memory);

    // Each returns the index of the new piece, or nullopt if the call cannot continue (outcome()
    // then says why). A data piece may be missing and still has an index, so that one pass finds
    // all pages that are needed.
    struct Slot {
        uint16_t parent = no_piece;
        uint32_t at = 0;  // argument index, or offset in the parent
    };
    std::optional<uint16_t> add(Slot slot, Address from, uint64_t bytes, Direction direction,
                                Returned returned);
    std::optional<uint16_t> add_string(Slot slot, Address from);

    Piece& piece(uint16_t index) { return call_.pieces[index]; }
    // Whether the bytes to send have been read; only then can pointers in them be followed.
    [[nodiscard]] bool complete(uint16_t index) const { return complete_[index]; }
    template <class T>
    [[nodiscard]] T read(uint16_t index, size_t at) const {
        GPR_ASSERT(complete(index) && at + sizeof(T) <= call_.pieces[index].in_length);
        T value;
        std::memcpy(&value, call_.in_bytes.data() + in_offsets_[index] + at, sizeof(T));
        return value;
    }
    // A value in the program's memory that is not a piece itself.
    template <class T>
    std::optional<T> peek(Address from) {
        T value;
        return fetch(from, &value, sizeof(T)) ? std::optional<T>(value) : std::nullopt;
    }

    [[nodiscard]] const SyscallArguments& args() const { return call_.args; }
    [[nodiscard]] bool stopped() const { return raw_ != nullptr; }
    void stay_raw(const char* why) {
        if (raw_ == nullptr) raw_ = why;
    }

    Marshalled finish() &&;

private:
    bool fetch(Address from, void* to, size_t bytes);
    std::optional<uint16_t> push(Slot slot, Address from, uint64_t bytes);

    MarshalledCall call_;
    std::vector<size_t> in_offsets_;
    std::vector<bool> complete_;
    MemoryReader& memory_;
    std::vector<PageNeed> need_;
    const char* raw_ = nullptr;
};

}  // namespace gpr
