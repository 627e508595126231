// One node's half of coherence: which pages are here, who waits for them, who must keep them. Pure:
// events in, actions out.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mm/page_actions.h"
#include "mm/page_protocol.h"
#include "mm/read_ahead.h"

namespace gpr {

// A thread has faulted on a page: it is missing, or write-protected and was written.
struct Fault {
    PageKey key;
    Access access = Access::read;
    Tid tid = 0;
    uint32_t ahead = 0;  // following pages worth requesting in any case
    // How many pages before and after lie in the same mapping: never ask for more.
    uint64_t pages_before = 0;
    uint64_t pages_after = 0;
    bool may_wait = true;  // pages that were read ahead may be kept outside of the program's memory
    bool has_trail = true;  // what the thread missed next the last time may be asked for as well
};

// The result of a Take, for each page.
enum class Taken : uint8_t {
    data,
    zero,    // the page was missing: never touched
    none,    // taken; the bytes were not wanted
    pinned,  // could not be taken, and is still there
    absent,  // there is no such page: a file ends before it
};
struct TakeResult {
    Taken kind = Taken::none;
    std::shared_ptr<const std::byte> bytes;  // for `data`: 4096 bytes
};

struct AgentOptions {
    // measured: 50 us is too short, 100 us suffices in 99.9 % of the cases.
    uint64_t hold_ns = 100'000;
    ReadAheadOptions read_ahead;
};

struct AgentStats {
    uint64_t faults = 0, requests = 0, pages_in = 0, pages_out = 0, upgrades = 0;
    uint64_t recalls_deferred = 0, late_messages = 0, bad_messages = 0;
    uint64_t pages_ahead = 0, markers_kept = 0, markers_reached = 0, rights_given = 0;
};

class PageAgent {
public:
    explicit PageAgent(NodeId self, AgentOptions options = {});
    ~PageAgent();
    PageAgent(const PageAgent&) = delete;
    PageAgent& operator=(const PageAgent&) = delete;

    // --- objects; the same calls on every node and at the directory, in the same causal order ---
    // Untouched pages of the object belong to its birth node, exclusively.
    void add_object(ObjectId object, NodeId birth);
    void erase_object(ObjectId object);
    // The content of the pages is gone (munmap, MADV_DONTNEED): they are as just born. Waiting
    // threads are woken to fault again.
    void drop(ObjectId object, uint64_t first, uint64_t count);

    // --- events ---
    void on_fault(const Fault& fault, uint64_t now_ns);
    void on_message(Message message, uint64_t now_ns);  // from the directory
    void on_taken(uint64_t id, std::vector<TakeResult> results, uint64_t now_ns);
    void on_installed(uint64_t id, uint64_t now_ns);
    // Of the first `looked` pages (at least one), these are touched: sorted, at most
    // max_touched_spans.
    void on_found(uint64_t id, uint64_t looked, const std::vector<PageSpan>& touched,
                  uint64_t now_ns);
    // The thread has got further than its last fault (system call, crossing): its pages need no
    // hold.
    void on_progress(Tid tid, uint64_t now_ns);
    // The same, reported late: if the thread waits for a page, it began to wait after that.
    void on_past_progress(Tid tid, uint64_t now_ns);
    // The thread is gone, or no longer waits here because it was moved.
    void on_thread_gone(Tid tid, uint64_t now_ns);
    // The thread has ended.
    void forget_thread(Tid tid);
    void on_timer(uint64_t now_ns);
    // When on_timer() is needed next; UINT64_MAX: never.
    [[nodiscard]] uint64_t next_deadline() const;

    // --- what the supervisor itself needs ---
    // Ends with AcquireDone{cookie} when all pages of the runs are present with that access at the
    // same time. They then stay for one hold time, or with `hold` until release(cookie). A holder
    // must not start another acquire before it releases: two such holders could wait for each
    // other.
    void acquire(std::vector<PageRun> runs, Access access, uint64_t cookie, bool hold,
                 uint64_t now_ns);
    // Also cancels an acquire that is not done yet.
    void release(uint64_t cookie, uint64_t now_ns);

    // A thread leaves for another node and takes the page along: write moves the ownership, read
    // leaves a shared copy here. For a page that is shared already only the right is sent. False if
    // the page cannot be given now (not here, in use), or if the other node may have the copy
    // already. `tid` will hold the page there.
    bool give_away(PageKey key, NodeId to, Access access, Tid tid, uint64_t now_ns);
    // Whether the page has been given away and not been sent yet.
    [[nodiscard]] bool is_leaving(PageKey key) const;
    [[nodiscard]] std::vector<PageKey> leaving(const ObjectTest& asked) const;

    // For a forked process: makes a new object with a copy of this node's state about the old one.
    // To be called when the directory holds the object for all and is_quiet(), this is_quiet(), and
    // all messages between them have been processed. (A page that nobody had may still be
    // installed: it is zero, or missing, in the copy.)
    void copy_object(ObjectId from, ObjectId to);
    // Whether no page of such an object is being installed or taken.
    [[nodiscard]] bool is_quiet(const ObjectTest& asked) const;
    // The pages of the run that other nodes share, as runs.
    [[nodiscard]] std::vector<PageSpan> shared_pages(ObjectId object, uint64_t first,
                                                     uint64_t count) const;

    // Whether pages that were read ahead may be kept here, outside of the program's memory (see
    // read_ahead.h). With false, the kept ones are installed, and no more are kept: for the time in
    // which a kernel copies the memory.
    void let_pages_wait(bool allowed, uint64_t now_ns);

    // --- questions ---
    [[nodiscard]] Presence presence(PageKey key) const;
    // Whether the page is not here, but has been before another node took it.
    [[nodiscard]] bool was_here(PageKey key) const;
    // Whether an Install, Unprotect or Take of the page is unfinished, so that it is unknown
    // whether its content is in the program's memory.
    [[nodiscard]] bool in_motion(PageKey key) const;
    // Whether the page is requested or on its way.
    [[nodiscard]] bool is_arriving(PageKey key) const;
    [[nodiscard]] std::vector<PageKey> arriving(const ObjectTest& asked) const;
    // Whether a page of an unfinished Install, Unprotect or Take is still in the same generation.
    [[nodiscard]] bool is_current(uint64_t id, PageKey key) const;
    [[nodiscard]] const AgentStats& stats() const;
    [[nodiscard]] size_t memory_bytes() const;

    // Moves the actions since the last call, in order, into `into`, which is cleared first.
    void drain(std::vector<Action>& into);

private:
    struct Core;
    std::unique_ptr<Core> core_;
};

}  // namespace gpr
