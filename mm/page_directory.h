// Who holds each page of a session: the single authority, on node 0. Pure: events in, actions out.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mm/page_actions.h"
#include "mm/page_protocol.h"

namespace gpr {

struct DirectoryOptions {
    uint64_t first_probe_ns = 10'000'000;     // an anchored page is tried again after this,
    uint64_t last_probe_ns = 10'000'000'000;  // doubled up to this
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
    // moves the ownership. Ends with CollectDone{cookie} when all have landed there. Pages that
    // nobody touched stay as they are.
    void collect(ObjectId object, uint64_t first, uint64_t count, NodeId node, Access access,
                 uint64_t cookie, uint64_t now_ns);

    // Until as many releases nobody but node 0 is given pages of the object: what others ask for,
    // or have asked for, waits. What a collect has brought to node 0 then stays there, as a kernel
    // needs it that copies. The agent there must not give pages away meanwhile.
    void hold(ObjectId object);
    void release(ObjectId object, uint64_t now_ns);

    // The node is gone for good. Returns how many pages had their only copy there; they are zero
    // now. Collect first for an orderly end.
    uint64_t remove_node(NodeId node, uint64_t now_ns);

    [[nodiscard]] PageHolders holders(PageKey key) const;
    [[nodiscard]] const DirectoryStats& stats() const;
    [[nodiscard]] size_t memory_bytes() const;

    // The actions asked for since the last call: SendMessage and CollectDone.
    void drain(std::vector<Action>& into);

private:
    struct Core;
    std::unique_ptr<Core> core_;
};

}  // namespace gpr
