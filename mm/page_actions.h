// What the coherence core asks its surroundings to do. The core itself touches no memory and no
// socket.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "mm/page_protocol.h"

namespace gpr {

// Make pages present, then wake their waiters; answer with PageAgent::on_installed(id). On the
// object's birth node, content `zero` means its initial content, which is that of the file if it
// has one. A page that is present already is only woken (and made writable). After a wait, continue
// only with the pages for which PageAgent::is_current(id, key) still holds.
struct Install {
    uint64_t id = 0;
    PageRun run;
    Presence presence = Presence::shared;  // shared: write-protected
    bool wake = false;                     // at least one of these pages has a waiter
    std::vector<PageContent> contents;     // zero or data
};

// Make present, write-protected pages writable and wake their waiters; answer with
// on_installed(id).
struct Unprotect {
    uint64_t id = 0;
    PageRun run;
    bool wake = false;
};

// Move pages out of the program's memory (to scratch), and if `leave` is shared put them back
// write-protected; answer with PageAgent::on_taken(id, one result for each page). Before putting a
// page back check PageAgent::is_current(id, key): a dropped page must not return.
struct Take {
    uint64_t id = 0;
    PageRun run;
    // shared: the pages are write-protected already, so with leave == shared a read is enough.
    Presence had = Presence::exclusive;
    Presence leave = Presence::none;
    bool want_data = true;  // false: the bytes are discarded; results may be `none`
};

// Which pages of the run has the program touched? Only those matter that no other node has had yet.
// Answer with PageAgent::on_found(), possibly for the first part of the run only.
struct FindTouched {
    uint64_t id = 0;
    PageRun run;
};

struct SendMessage {
    NodeId to = 0;
    bool bulk = false;  // a hint: read-ahead and collects may come after urgent traffic
    Message message;
};

// The page is present with the requested access: wake its waiters, do nothing else.
struct Wake {
    PageKey key;
};

// All pages of an acquire are present at the same time.
struct AcquireDone {
    uint64_t cookie = 0;
    bool refused = false;  // a page is anchored elsewhere: `anchor` is the node, or `nowhere`
    NodeId anchor = 0;
};

// A thread wants a page that is anchored at another node: move the thread there, because the page
// cannot come. If the node is `nowhere`, there is no such page; the next touch asks again.
struct Anchored {
    PageKey key;
    NodeId anchor = 0;
    Tid tid = 0;
};

// A collect has ended; left_behind counts pinned pages that stayed where they are.
struct CollectDone {
    uint64_t cookie = 0;
    uint64_t collected = 0;
    uint64_t left_behind = 0;
};

using Action = std::variant<Install, Unprotect, Take, FindTouched, SendMessage, Wake, AcquireDone,
                            Anchored, CollectDone>;

}  // namespace gpr
