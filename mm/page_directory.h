// Who holds each page of a session: the only authority, on node 0. Pure: events in, actions out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "mm/page_actions.h"
#include "mm/page_protocol.h"

namespace gpr {

struct DirectoryOptions {
    uint64_t first_probe_ns = 10'000'000;     // an anchored page is tried again after this time,
    uint64_t last_probe_ns = 10'000'000'000;  // doubled each time up to this
    uint32_t collect_window = 512;            // pages of a collect under way at a time
};

struct DirectoryStats {
    uint64_t requests = 0, grants = 0, recalls = 0, zero_grants = 0, keep_grants = 0;
    uint64_t migratory_grants = 0, late_messages = 0, bad_messages = 0;
};

struct PageHolders {
    uint16_t nodes = 0;  // one bit per node
    bool exclusive = false;
    bool anchored = false;
    bool busy = false;
    Epoch epoch = 0;
};

// A directory's inputs and decisions: the same inputs in the same order give the same decisions.
namespace directory_event {
struct AddObject {
    ObjectId object = 0;
    NodeId birth = 0;
};
struct EraseObject {
    ObjectId object = 0;
};
struct Drop {
    ObjectId object = 0;
    uint64_t first = 0, count = 0;
};
struct Told {
    NodeId from = 0;
    Message message;
    uint64_t now_ns = 0;
};
struct Collect {
    ObjectId object = 0;
    uint64_t first = 0, count = 0;
    NodeId node = 0;
    Access access = Access::read;
    uint64_t cookie = 0, now_ns = 0;
};
struct Hold {
    ObjectId object = 0;
};
struct HoldAll {
    ObjectId object = 0;
};
struct CopyObject {
    ObjectId from = 0, to = 0;
};
struct Release {
    ObjectId object = 0;
    uint64_t now_ns = 0;
};
struct RemoveNode {
    NodeId node = 0;
    uint64_t now_ns = 0;
};
using Decision = std::variant<SendMessage, CollectDone>;
struct Decided {
    std::vector<Decision> decisions;  // the result of a drain()
};
}  // namespace directory_event

using DirectoryEvent =
    std::variant<directory_event::AddObject, directory_event::EraseObject, directory_event::Drop,
                 directory_event::Told, directory_event::Collect, directory_event::Hold,
                 directory_event::HoldAll, directory_event::CopyObject, directory_event::Release,
                 directory_event::RemoveNode, directory_event::Decided>;

// A page that is wished for, or that a node was asked to give up.
struct PageWait {
    struct Wisher {
        Seniority who;  // tid 0: not a thread of the program
        Access access = Access::read;
        bool optional = false;
        bool collect = false;
        bool held_back = false;  // by a hold of the object
    };
    PageKey key;
    PageHolders holders;
    std::vector<Wisher> wishers;  // in the order in which they are served
    uint16_t owing = 0;           // nodes that were asked to give the page up, one bit each
    Seniority asked_for;          // in whose name they were asked
};

class PageDirectory {
public:
    explicit PageDirectory(DirectoryOptions options = {});
    ~PageDirectory();
    PageDirectory(const PageDirectory&) = delete;
    PageDirectory& operator=(const PageDirectory&) = delete;

    // The same calls, in the same causal order, as at every PageAgent.
    void add_object(ObjectId object, NodeId birth);
    void erase_object(ObjectId object);
    void drop(ObjectId object, uint64_t first, uint64_t count);

    void on_message(NodeId from, Message message, uint64_t now_ns);

    // Brings every touched page of the run to `node`: read leaves shared copies elsewhere, write
    // moves the ownership. Ends with CollectDone{cookie} when all have been installed there.
    // Untouched pages stay as they are.
    void collect(ObjectId object, uint64_t first, uint64_t count, NodeId node, Access access,
                 uint64_t cookie, uint64_t now_ns);

    // Until it is released as often, only node 0 is given pages of the object: requests of other
    // nodes wait, earlier ones too. So pages collected at node 0 stay there while a kernel copies
    // the memory. Meanwhile the agent there must not give pages away; pages that it gave away
    // before and has not sent yet would come back, so the collect must not begin before these are
    // sent.
    void hold(ObjectId object);
    void release(ObjectId object, uint64_t now_ns);
    [[nodiscard]] bool holds_back(ObjectId object) const;  // whether a node waits for that
    // The same, but node 0 is given no pages either, until all holds of the object are released.
    void hold_all(ObjectId object);
    // Whether no page of such an object is wished for or being recalled.
    [[nodiscard]] bool is_quiet(const ObjectTest& asked) const;
    // Makes a new object with a copy of the state of this one, which must be held for all and
    // quiet. The agents copy it as well, before anything about either object is sent.
    void copy_object(ObjectId from, ObjectId to);

    // The node is gone for good. Returns how many pages had their only copy there; these are zero
    // now. For an orderly end, collect first.
    uint64_t remove_node(NodeId node, uint64_t now_ns);

    [[nodiscard]] PageHolders holders(PageKey key) const;
    // The first page in [first, end) that any node other than the birth node has ever asked for;
    // else end.
    [[nodiscard]] uint64_t next_known(ObjectId object, uint64_t first, uint64_t end) const;
    [[nodiscard]] const DirectoryStats& stats() const;
    [[nodiscard]] size_t memory_bytes() const;

    // The actions since the last call: SendMessage and CollectDone.
    void drain(std::vector<Action>& into);

    // Everything unfinished, by page.
    [[nodiscard]] std::vector<PageWait> waits() const;

    // The watcher is called with each event before that is applied, and with decisions when they
    // are drained.
    void watch(std::function<void(const DirectoryEvent&)> watcher);
    void apply(DirectoryEvent event);  // does nothing for Decided; decisions come by drain()
    // The whole state that decisions depend on (page_directory_state.cc): a directory that loads it
    // continues as this one does. Only when is_drained().
    [[nodiscard]] bool is_drained() const;
    [[nodiscard]] std::vector<std::byte> save() const;
    [[nodiscard]] bool load(std::span<const std::byte> saved);

private:
    struct Core;
    std::unique_ptr<Core> core_;
};

}  // namespace gpr
