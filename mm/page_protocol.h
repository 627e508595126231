// The messages of the coherence protocol, as plain data.
//
// Every message goes between a node's PageAgent and the PageDirectory on node 0. Messages between
// the same two may overtake each other (urgent and bulk streams); epochs make late ones harmless.
// None may be lost or repeated. A message must not be applied before the metadata that its sender
// knew, above all drops (docs/architecture.md, "Order").
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

namespace gpr {

using NodeId = uint8_t;     // 0 is home, where the directory is
using Tid = int32_t;        // of the program; the same on every node
using ObjectId = uint32_t;  // a memory object, never reused within a session

// Selects objects where there may be too many for a list.
using ObjectTest = std::function<bool(ObjectId)>;
inline ObjectTest only(ObjectId object) {
    return [object](ObjectId other) { return other == object; };
}

inline constexpr NodeId directory_node = 0;
inline constexpr unsigned max_nodes = 16;
// Of a node in a set of nodes.
constexpr uint16_t bit(NodeId node) { return static_cast<uint16_t>(1U << node); }
inline constexpr NodeId nowhere = 0xff;  // instead of a node: there is no such page
// In one message; a peer that sends more violates the protocol.
inline constexpr uint32_t max_run_pages = 512;
// With content, in a message that is not urgent: such a frame is sent in one piece (128 KiB), so
// the receiver need not assemble it.
inline constexpr uint32_t bulk_run_pages = 32;

struct PageKey {
    ObjectId object = 0;
    uint64_t index = 0;

    auto operator<=>(const PageKey&) const = default;
    PageKey operator+(uint64_t pages) const { return {object, index + pages}; }
};

struct PageRun {
    ObjectId object = 0;
    uint64_t first = 0;
    uint32_t count = 0;

    bool operator==(const PageRun&) const = default;
    [[nodiscard]] PageKey operator[](uint32_t i) const { return {object, first + i}; }
};

enum class Access : uint8_t { read, write };
enum class Presence : uint8_t { none, shared, exclusive };

// Counts the ownership changes of a page. A drop (munmap, MADV_DONTNEED) begins a new generation of
// the page on every node, in which versions count from 0 again: low 36 bits version, high 28 bits
// generation. Within a version the mode (one writer, or readers) and the content do not change, and
// no node is granted the page twice.
using Epoch = uint64_t;
inline constexpr unsigned version_bits = 36;
inline constexpr Epoch make_epoch(uint32_t generation, uint64_t version) {
    return (static_cast<uint64_t>(generation) << version_bits) |
           (version & ((1ULL << version_bits) - 1));
}
inline constexpr uint32_t generation_of(Epoch e) {
    return static_cast<uint32_t>(e >> version_bits);
}
inline constexpr uint64_t version_of(Epoch e) { return e & ((1ULL << version_bits) - 1); }
inline constexpr Epoch next_version(Epoch e) {
    return make_epoch(generation_of(e), version_of(e) + 1);
}
// Negative, 0, positive if a is before, at, after b in the same generation; versions may wrap
// around.
inline constexpr int64_t compare_epochs(Epoch a, Epoch b) {
    return static_cast<int64_t>((a - b) << (64 - version_bits));
}

enum class ContentKind : uint8_t {
    none,      // no content is sent: the receiver has it, or nobody needs it
    zero,      // never touched, or known to be zero: no payload
    data,      // one page of bytes
    pinned,    // Surrender only: a device has pinned the page, it stays here
    declined,  // Surrender only: an optional page that this node still wants
    absent,    // Surrender only: there is no such page at present, a file ends before it
};

struct PageContent {
    ContentKind kind = ContentKind::none;
    // For `data`: 4096 bytes, which keep alive the block that contains them (a frame, the scratch
    // ring).
    std::shared_ptr<const std::byte> bytes;
};

// Who wants a page, and since when. (Not to be confused with the priority of frames,
// transport/frame.h.) The oldest wins: by age, then node, then tid. Ages are logical (Lamport)
// times, because the clocks of two hosts cannot be compared.
struct Seniority {
    uint64_t age = 0;
    NodeId node = 0;
    Tid tid = 0;

    auto operator<=>(const Seniority&) const = default;
};

// Agent to directory. The first `must` pages of the run are needed (perhaps none); the rest is
// read-ahead.
struct Request {
    PageRun run;
    uint32_t must = 1;
    Access access = Access::read;
    Presence have = Presence::none;  // of all pages, at the sender when it asked
    Tid tid = 0;
    uint64_t age = 0;
    std::vector<Epoch> have_epochs;  // of the first pages: at least `must`, at most run.count
    bool lost = false;  // the thread had all of these pages, and they went to another node
};

// Directory to agent. contents: data, zero, or none for "you have it, only the right is new".
struct Grant {
    PageRun run;
    Presence presence = Presence::none;
    Tid tid = 0;           // held for this thread when it arrives; 0: read-ahead
    uint32_t collect = 0;  // not 0: answer each page with Ack
    std::vector<Epoch> epochs;
    std::vector<PageContent> contents;
};

// Directory to agent: give these pages up, or keep them shared.
struct Recall {
    PageRun run;
    Presence leave = Presence::none;
    bool want_data = true;  // false: other nodes have the content
    bool optional = false;  // for read-ahead: decline pages in use
    uint32_t round = 0;     // repeated in the answer; a recall that is sent again keeps it
    Seniority for_whom;
    std::vector<Epoch> epochs;
};

// Agent to directory: the answer to a Recall.
struct Surrender {
    PageRun run;
    Presence left = Presence::none;
    uint32_t round = 0;
    std::vector<Epoch> epochs;  // as recalled
    std::vector<PageContent> contents;
};

// Agent to directory: given up unasked for another node, with a crossing.
struct Push {
    PageRun run;
    NodeId to = 0;
    Presence left = Presence::none;
    Presence grant = Presence::none;
    Tid tid = 0;
    std::vector<Epoch> epochs;
    std::vector<PageContent> contents;
};

// Directory to agent: the page is anchored at a node (a device has pinned it), go there instead; or
// with `nowhere`, there is no such page.
struct Refused {
    PageRun run;
    NodeId anchor = 0;
    std::vector<Epoch> epochs;
};

// Agent to directory: pages of a collect have been installed.
struct Ack {
    uint32_t collect = 0;
    uint32_t pages = 0;
};

// Directory to agent, about an object that was born there: which pages of the run, among those that
// only this node ever had, has the program touched? Here a run may have any size.
struct Census {
    PageRun run;
    uint32_t collect = 0;
};

struct PageSpan {
    uint64_t first = 0;
    uint64_t count = 0;

    bool operator==(const PageSpan&) const = default;
};
inline constexpr size_t max_touched_spans = 4096;

// Agent to directory: the answer, for as much as was examined, at least one page. Touched pages
// outside of the question may be included.
struct Touched {
    PageRun run;
    uint32_t collect = 0;
    uint64_t pushed = 0;  // pages that this node has pushed so far; some may still be on their way
    std::vector<PageSpan> touched;  // sorted, at most max_touched_spans
};

struct Message {
    uint64_t clock = 0;  // Lamport time of the sender
    std::variant<Request, Grant, Recall, Surrender, Push, Refused, Ack, Census, Touched> body;
};

}  // namespace gpr
