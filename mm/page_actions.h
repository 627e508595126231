// What the coherence core asks of its glue. The core itself touches no memory and no socket.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "mm/page_protocol.h"

namespace gpr {

// Make pages present, then wake who waits for them; answer with PageAgent::on_installed(id).
// Content zero on the object's birth node means "as it was born": of an object that starts with
// file content, the glue installs that content.
// EEXIST: the page is there already: wake. EAGAIN: read the userfaultfd first (a drop may come),
// then go on with the pages for which PageAgent::is_current(id, key) still holds.
struct Install {
    uint64_t id = 0;
    PageRun run;
    Presence presence = Presence::shared;  // shared: write-protected
    bool wake = false;                     // somebody waits for at least one of these pages
    std::vector<PageContent> contents;     // zero or data
};

// Make present, write-protected pages writable and wake; answer with on_installed(id).
struct Unprotect {
    uint64_t id = 0;
    PageRun run;
    bool wake = false;
};

// Take pages out of the program's memory (MOVE to scratch), and put them back write-protected if
// leave is shared; answer with PageAgent::on_taken(id, one result per page). Before a page is put
// back, PageAgent::is_current(id, key) must still hold: a dropped page must not return.
struct Take {
    uint64_t id = 0;
    PageRun run;
    Presence had = Presence::exclusive;  // shared: the pages are write-protected already, so that
                                         // with leave shared a plain read is enough
    Presence leave = Presence::none;
    bool want_data = true;  // false: the bytes are thrown away, results may say none
};

// Which pages of the run has the program touched? Nobody else had one of them yet, or it does not
// matter. Answer with PageAgent::on_found(); that may be about the first part of the run only.
struct FindTouched {
    uint64_t id = 0;
    PageRun run;
};

struct SendMessage {
    NodeId to = 0;
    bool bulk = false;  // a hint: read-ahead and collects need not go before urgent traffic
    Message message;
};

// The page is there with the access that was asked: wake its waiters, nothing else.
struct Wake {
    PageKey key;
};

// All pages of an acquire are here at the same time.
struct AcquireDone {
    uint64_t cookie = 0;
    bool refused = false;  // a page is anchored elsewhere: `anchor` is the node, or nowhere
    NodeId anchor = 0;
};

// A thread wants a page that is anchored elsewhere: bring the thread there, the page cannot come.
// Or nowhere: there is no page, and whoever touches it again asks again.
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
