// A forwarded call carries the memory it works on: pure code, used on both sides.
//
//   acceptor                            home
//   marshal()  ---- MarshalledCall ---> place() into a bounce area, run the call,
//   scatter()  <--- result, bytes ----  collect()
//
// The bounce area lies in the program's memory at home, so the kernel there reads and writes it
// in the thread's own context. A call is never split: one that is too large, or whose pointers
// are not mapped, stays `raw` and runs on the original pointers through coherence.
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
    missing,   // mapped, but some page is not resident here
    unmapped,  // no mapping, or none that lets the program read
};

// The program's memory as the supervisor sees it. Must not block on a missing page.
class MemoryReader {
public:
    virtual ~MemoryReader() = default;
    // All of it or nothing.
    virtual ReadOutcome read(Address from, void* to, size_t bytes) = 0;
    // False: the kernel would fail to write there, so it shall say so itself.
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

// One run of program memory that the call reads or writes.
struct Piece {
    Address program;             // known at the acceptor only; it does not travel
    uint32_t offset = 0;         // in the bounce area; congruent to `program` (see marshal.cc)
    uint32_t capacity = 0;       // bytes reserved there
    uint32_t in_length = 0;      // bytes sent, a prefix of the piece
    uint16_t parent = no_piece;  // the piece that holds the pointer; no_piece: an argument does
    uint32_t slot = 0;           // byte offset of the pointer in the parent, or argument index
    Returned returned = Returned::nothing;
    uint16_t unit = 1;
    uint8_t extra = 0;
    uint16_t length_piece = no_piece;  // Returned::valued: where the kernel leaves the length
    uint32_t length_at = 0;            // a 32-bit number at that offset

    bool operator==(const Piece&) const = default;
};

struct MarshalledCall {
    uint32_t number = 0;
    SyscallArguments args{};  // as the program passed them
    std::vector<Piece> pieces;
    std::vector<std::byte> in_bytes;  // each piece's in_length bytes, one after the other
    uint32_t bounce_size = 0;

    bool operator==(const MarshalledCall&) const = default;
};

// Run the call at home on the original pointers; coherence moves the pages.
struct RawCall {
    const char* why = "";
};

// Make these resident, then marshal again.
struct NeedPages {
    std::vector<PageNeed> pages;
};

using Marshalled = std::variant<MarshalledCall, NeedPages, RawCall>;

// Acceptor.
Marshalled marshal(uint32_t number, const SyscallArguments& args, MemoryReader& memory);

// The shape of argument `index` of this call, with ioctl, fcntl and prctl resolved.
Argument argument_shape(uint32_t number, const SyscallArguments& args, size_t index);

// Home. `bounce` is the address of bounce_memory in the program: page aligned, bounce_memory at
// least bounce_size bytes. Gives the arguments to run the call with.
SyscallArguments place(const MarshalledCall& call, Address bounce, HostileMemory bounce_memory);

// Home, after the call: what it wrote. `result` is the kernel's own, so -4095..-1 is an error
// (-512..-516 ask for a restart).
std::vector<std::byte> collect(const MarshalledCall& call, long result,
                               HostileMemory bounce_memory);

struct MemoryWrite {
    Address to;
    std::span<const std::byte> bytes;  // inside the out_bytes given to scatter()
};

struct Scattered {
    std::vector<MemoryWrite> writes;
    std::vector<Range> writable;     // whole pages that must be writable for them, merged
    std::vector<Range> overwritten;  // whole pages that are replaced altogether: no data needed
};

// Acceptor. Foreign bytes: everything is checked against the call as it was sent.
Result<Scattered> scatter(const MarshalledCall& call, std::span<const std::byte> out_bytes);

// The wire form. `parse_call` takes foreign bytes.
std::vector<std::byte> serialise_call(const MarshalledCall& call);
Result<MarshalledCall> parse_call(std::span<const std::byte> bytes);

// What a raw call is going to touch, as far as its arguments tell: for prefetching. With a
// reader, resident vectors (iovec, msghdr) are followed.
std::vector<PageNeed> raw_ranges(uint32_t number, const SyscallArguments& args,
                                 MemoryReader* memory = nullptr);
std::vector<Range> raw_input_ranges(uint32_t number, const SyscallArguments& args,
                                    MemoryReader* memory = nullptr);
std::vector<Range> raw_output_ranges(uint32_t number, const SyscallArguments& args,
                                     MemoryReader* memory = nullptr);

}  // namespace gpr
