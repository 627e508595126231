// Messages of the page protocol, from other nodes and to them. On node 0 requests that nobody waits
// for come after all that is urgent.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "mm/page_actions.h"
#include "mm/page_protocol.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class Messages {
public:
    // Carries a message to another node.
    using Send = std::function<void(NodeId to, bool bulk, const Message&)>;
    Messages(Core& core, Pager& pager, Send send)
        : core_(core), pager_(pager), send_(std::move(send)) {}

    void receive(NodeId from, Message message);
    void send(SendMessage& action);
    // bytes: how much is queued for the other nodes. When it drops to zero, on_drained() must be
    // called.
    void watch_queue(std::function<uint64_t()> bytes) { queued_bytes_ = std::move(bytes); }
    void on_drained() { serve_read_ahead(); }

private:
    void serve_read_ahead();

    Core& core_;
    Pager& pager_;
    Send send_;
    std::deque<std::pair<NodeId, Message>> read_ahead_;  // requests that can wait
    bool read_ahead_posted_ = false;
    std::function<uint64_t()> queued_bytes_;
};

}  // namespace gpr::paging
