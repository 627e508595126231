// A forwarded call carries the memory that it works on. Pure code, used on both sides:
//
//   acceptor                            home
//   marshal()  ---- MarshalledCall ---> place() into a bounce area, make the call,
//   scatter()  <--- result, bytes ----  gather()
//
// The bounce area is in the program's memory at home, so the kernel there reads and writes it in
// the thread's own context. A call is never split: one that is too large, or whose pointers are not
// mapped, stays `raw` and uses the original pointers through coherence.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "base/address.h"
#include "base/hostile_memory.h"
#include "base/result.h"
#include "syscall/shape.h"

namespace gpr {

using SyscallArguments = std::array<uint64_t, 6>;

inline constexpr size_t bounce_limit = 1 << 20;  // bytes, alignment gaps included
inline constexpr size_t piece_limit = 2048;      // IOV_MAX is 1024
inline constexpr size_t string_limit = 4096;     // PATH_MAX, with its NUL

enum class ReadOutcome : uint8_t {
    done,
    missing,   // mapped, but a page is not resident here
    unmapped,  // not mapped, or not readable by the program
};

// The program's memory as the supervisor sees it. Must not block on a missing page.
class MemoryReader {
public:
    virtual ~MemoryReader() = default;
    // All of it or nothing.
    virtual ReadOutcome read(Address from, void* to, size_t bytes) = 0;
    // False if the kernel would fail to write there; then it shall report the error itself.
    virtual bool writable(Range range) {
        (void)range;
        return true;
    }
};

struct PageNeed {
    Range range;
    bool write = false;
    bool operator==(const PageNeed&) const = default;
};

inline constexpr uint16_t no_piece = 0xffff;

// A contiguous part of the program's memory that the call reads or writes.
struct Piece {
    Address program;             // known at the acceptor only; not sent
    uint32_t offset = 0;         // in the bounce area; congruent to `program` (see layout.cc)
    uint32_t capacity = 0;       // bytes reserved there
    uint32_t in_length = 0;      // bytes sent, from the beginning of the piece
    uint16_t parent = no_piece;  // the piece with the pointer to it; no_piece: an argument is
    uint32_t slot = 0;           // byte offset of the pointer in the parent, or argument index
    Returned returned = Returned::nothing;
    uint16_t unit = 1;
    uint8_t extra = 0;
    // Returned::valued: the piece in which the kernel writes the length,.
    uint16_t length_piece = no_piece;
    uint32_t length_at = 0;  // as a 32-bit number at this offset

    bool operator==(const Piece&) const = default;
};

struct MarshalledCall {
    uint32_t number = 0;
    SyscallArguments args{};  // the program's arguments
    std::vector<Piece> pieces;
    std::vector<std::byte> in_bytes;  // in_length bytes of each piece, one after the other
    uint32_t bounce_size = 0;

    bool operator==(const MarshalledCall&) const = default;
};

// Make the call at home with the original pointers; coherence moves the pages.
struct RawCall {
    const char* why = "";
};

// Make these pages resident, then marshal again.
struct NeedPages {
    std::vector<PageNeed> pages;
};

using Marshalled = std::variant<MarshalledCall, NeedPages, RawCall>;

// At the acceptor.
Marshalled marshal(uint32_t number, const SyscallArguments& args, MemoryReader& memory);

// The shape of argument `index` of this call, with ioctl, fcntl and prctl resolved.
Argument argument_shape(uint32_t number, const SyscallArguments& args, size_t index);

// At home. `bounce` is the address of bounce_memory in the program: page aligned, at least
// bounce_size bytes. Returns the arguments to make the call with.
SyscallArguments place(const MarshalledCall& call, Address bounce, HostileMemory bounce_memory);

// At home, after the call: what it has written. `result` is the kernel's own: -4095..-1 is an
// error, of which -512..-516 ask for a restart.
std::vector<std::byte> gather(const MarshalledCall& call, long result, HostileMemory bounce_memory);

struct MemoryWrite {
    Address to;
    std::span<const std::byte> bytes;  // points into the out_bytes given to scatter()
};

struct Scattered {
    std::vector<MemoryWrite> writes;
    std::vector<Range> writable;  // whole pages that must be writable for them, merged
    // Whole pages that are overwritten completely: their content is not needed.
    std::vector<Range> overwritten;
};

// At the acceptor. The bytes come from a peer: everything is checked against the call as it was
// sent.
Result<Scattered> scatter(const MarshalledCall& call, std::span<const std::byte> out_bytes);

// The wire form. parse_call() checks bytes from a peer.
std::vector<std::byte> serialise_call(const MarshalledCall& call);
Result<MarshalledCall> parse_call(std::span<const std::byte> bytes);

// What a raw call will touch, as far as its arguments show, to prefetch it. With a reader, resident
// vectors (iovec, msghdr) are followed.
std::vector<PageNeed> raw_ranges(uint32_t number, const SyscallArguments& args,
                                 MemoryReader* memory = nullptr);
std::vector<Range> raw_input_ranges(uint32_t number, const SyscallArguments& args,
                                    MemoryReader* memory = nullptr);
std::vector<Range> raw_output_ranges(uint32_t number, const SyscallArguments& args,
                                     MemoryReader* memory = nullptr);

}  // namespace gpr
