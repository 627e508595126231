// One node's half of coherence: which pages are here, who waits for them, who must keep them.
// Pure: events in, actions out.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mm/page_actions.h"
#include "mm/page_protocol.h"
#include "mm/read_ahead.h"

namespace gpr {

// A thread stopped at a page: missing, or a write to a write-protected one.
struct Fault {
    PageKey key;
    Access access = Access::read;
    Tid tid = 0;
    uint32_t ahead = 0;  // following pages worth asking for now, whatever the thread did before
    // Pages around it that lie in the same mapping: never ask beyond.
    uint64_t pages_before = 0;
    uint64_t pages_after = 0;
    bool may_wait = true;  // pages asked ahead may wait outside the program's memory
};

// What Take found, page by page.
enum class Taken : uint8_t {
    data,
    zero,    // the page was not there: never touched
    none,    // taken, the bytes were not wanted
    pinned,  // could not be taken, is still there as before
    absent,  // there is none: a file ends before it
};
struct TakeResult {
    Taken kind = Taken::none;
    std::shared_ptr<const std::byte> bytes;  // for data: 4096 bytes
};

struct AgentOptions {
    uint64_t hold_ns = 100'000;  // KERNEL-FACTS "Progress": 50 us too short, 100 us 99.9 %
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

    // --- what exists; the same calls on every node and at the directory, by metadata ---
    // Untouched pages of the object belong to its birth node, exclusively.
    void add_object(ObjectId object, NodeId birth);
    void erase_object(ObjectId object);
    // The content of the pages is gone (unmapped, MADV_DONTNEED): they are as just born. Waiting
    // threads are woken to fault again.
    void drop(ObjectId object, uint64_t first, uint64_t count);

    // --- events ---
    void on_fault(const Fault& fault, uint64_t now_ns);
    void on_message(Message message, uint64_t now_ns);  // from the directory
    void on_taken(uint64_t id, std::vector<TakeResult> results, uint64_t now_ns);
    void on_installed(uint64_t id, uint64_t now_ns);
    // Of the first `looked` pages (at least one) these are touched: in order, at most
    // max_touched_spans.
    void on_found(uint64_t id, uint64_t looked, const std::vector<PageSpan>& touched,
                  uint64_t now_ns);
    // The thread got further than its last fault (syscall, crossing): its pages need no hold.
    void on_progress(Tid tid, uint64_t now_ns);
    // The same, told some time after it happened: if the thread waits for a page, it does so since.
    void on_past_progress(Tid tid, uint64_t now_ns);
    // The thread is gone, or no longer waits here (it was moved).
    void on_thread_gone(Tid tid, uint64_t now_ns);
    void on_timer(uint64_t now_ns);
    // When on_timer is next needed; UINT64_MAX: never.
    [[nodiscard]] uint64_t next_deadline() const;

    // --- the supervisor's own needs ---
    // Ends with AcquireDone{cookie} once all pages of the runs are here with that access at the
    // same time. They then stay for one hold time, or with `hold` until release(cookie). A holder
    // must not start another acquire before it releases: two such holders could wait for each
    // other.
    void acquire(std::vector<PageRun> runs, Access access, uint64_t cookie, bool hold,
                 uint64_t now_ns);
    // Also ends an acquire that is not done yet.
    void release(uint64_t cookie, uint64_t now_ns);

    // A thread leaves for another node and takes the page along: write moves the ownership, read
    // leaves a shared copy here. Of a page that is shared already only the right travels. False if
    // the page is not ours to give now (not here, in use), or giving it would tell nothing new.
    // `tid` will hold the page there.
    bool give_away(PageKey key, NodeId to, Access access, Tid tid, uint64_t now_ns);
    // It was given away, and has not been sent yet.
    [[nodiscard]] bool is_leaving(PageKey key) const;
    [[nodiscard]] std::vector<PageKey> leaving(const ObjectTest& asked) const;

    // For a process that is copied: a new object of which this node has what it has of that one.
    // When the directory holds it for all and is quiet, this is quiet, and all that either said
    // has been heard. (A page that nobody had may be put in all the same: it is zero, or missing,
    // in the copy.)
    void copy_object(ObjectId from, ObjectId to);
    // No page of such an object is being put in or taken out.
    [[nodiscard]] bool is_quiet(const ObjectTest& asked) const;
    // The pages of the run that are shared with other nodes, as runs.
    [[nodiscard]] std::vector<PageSpan> shared_pages(ObjectId object, uint64_t first,
                                                     uint64_t count) const;

    // Pages asked ahead may wait here, outside the program's memory (see read_ahead.h). No: those
    // that do are put in, and no more wait, for a time in which a kernel copies the memory.
    void let_pages_wait(bool allowed, uint64_t now_ns);

    // --- questions ---
    [[nodiscard]] Presence presence(PageKey key) const;
    // An Install, Unprotect or Take of the page is not finished: whether its content is in the
    // program's memory cannot be said now.
    [[nodiscard]] bool in_motion(PageKey key) const;
    // Not here, but asked for or on its way.
    [[nodiscard]] bool is_arriving(PageKey key) const;
    [[nodiscard]] std::vector<PageKey> arriving(const ObjectTest& asked) const;
    // Whether a page of an unfinished Install, Unprotect or Take still belongs to the same life.
    [[nodiscard]] bool is_current(uint64_t id, PageKey key) const;
    [[nodiscard]] const AgentStats& stats() const;
    [[nodiscard]] size_t memory_bytes() const;

    // The actions asked for since the last call, in order. `into` is cleared and reused.
    void drain(std::vector<Action>& into);

private:
    struct Core;
    std::unique_ptr<Core> core_;
};

}  // namespace gpr
