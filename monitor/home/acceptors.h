// The acceptors of a session, by node. Each has a fragment of every process that is split, so news
// of a process goes to all of them, and news of a thread to the node where it is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "monitor/home/remote_node.h"
#include "monitor/node/address_change.h"

namespace gpr::home {

class Acceptors {
public:
    // Nodes are numbered 1, 2, ... in this order; each has descriptors above those of the one
    // before.
    RemoteNode& add(Link& link, unsigned fd_base, unsigned fd_last = 0) {
        auto node = static_cast<NodeId>(nodes_.size() + 1);
        nodes_.push_back(std::make_unique<RemoteNode>(node, link, fd_base, fd_last));
        return *nodes_.back();
    }

    [[nodiscard]] RemoteNode& at(NodeId node) const {
        GPR_ASSERT(contains(node));
        return *nodes_[node - 1u];
    }
    // The acceptor that owns this descriptor number; nullopt if it is home's or nobody's.
    [[nodiscard]] std::optional<NodeId> owner_of_fd(uint32_t number) const {
        std::optional<NodeId> owner;
        each([&](const RemoteNode& node) {
            if (node.fd_base != 0 && number >= node.fd_base && number <= INT32_MAX) owner = node.id;
        });
        return owner;
    }
    // The lowest descriptor number of an acceptor; home's are below. 0: no acceptor has
    // descriptors.
    [[nodiscard]] unsigned fd_base() const {
        unsigned lowest = 0;
        each([&](const RemoteNode& node) {
            if (lowest == 0) lowest = node.fd_base;
        });
        return lowest;
    }
    [[nodiscard]] bool contains(NodeId node) const { return node >= 1 && node <= nodes_.size(); }
    [[nodiscard]] NodeId size() const { return static_cast<NodeId>(nodes_.size()); }
    [[nodiscard]] bool are_several() const { return nodes_.size() > 1; }

    // Calls `tell` for every acceptor except `from`, which knows already.
    template <class Tell>
    void each(Tell tell, NodeId from = directory_node) const {
        for (const auto& node : nodes_) {
            if (node->id != from) tell(*node);
        }
    }
    void tell(pid_t pid, const AddressChange& change, NodeId from = directory_node) const {
        each([&](RemoteNode& node) { tell_change(node.link, node.id, pid, change); }, from);
    }
    void send(FrameBuilder& frame, NodeId from = directory_node) const {
        each([&](RemoteNode& node) { node.link.send(frame, Priority::urgent); }, from);
    }

    // Whether every acceptor has guard pages.
    [[nodiscard]] bool guard() const {
        bool all = true;
        each([&](const RemoteNode& node) { all = all && node.guards; });
        return all;
    }

    // The lowest address at which every acceptor can map memory.
    [[nodiscard]] Address lowest_address() const {
        Address highest{};
        each([&](const RemoteNode& node) { highest = std::max(highest, node.lowest); });
        return highest;
    }

    // Takes the place of an acceptor that the session has left, with its descriptor numbers.
    RemoteNode& replace(NodeId node, Link& link) {
        std::unique_ptr<RemoteNode>& place = nodes_.at(node - 1u);
        auto next = std::make_unique<RemoteNode>(node, link, place->fd_base, place->fd_last);
        next->counts = place->counts;
        next->counts.before = place->counts.told;
        next->counts.link_before = place->link_stats();
        next->masked = place->masked;
        former_.push_back(std::exchange(place, std::move(next)));
        reachable_ = true;
        return *place;
    }

    // Whether no acceptor has been lost. Losing one ends a session, unless all its processes rest.
    [[nodiscard]] bool reachable() const { return reachable_; }
    void note_lost() { reachable_ = false; }
    void close(const std::string& reason) const {
        each([&](RemoteNode& node) { node.link.close(reason); });
    }

    [[nodiscard]] LinkStats link_stats() const {
        LinkStats sum;
        each([&](RemoteNode& node) {
            sum.bytes_in += node.link_stats().bytes_in;
            sum.bytes_out += node.link_stats().bytes_out;
        });
        return sum;
    }

private:
    std::vector<std::unique_ptr<RemoteNode>> nodes_;
    std::vector<std::unique_ptr<RemoteNode>> former_;  // which a coroutine may still refer to
    bool reachable_ = true;
};

}  // namespace gpr::home
