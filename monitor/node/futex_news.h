// What nodes tell each other about futex waiters (docs/decisions/0016-watch-futexes.md). Before any
// frame that could carry a page away, each node says at which pages its threads wait, so that a
// wake is sent only where it may find a waiter. Home speaks for all other nodes: what it tells an
// acceptor includes the waiters at the others. The other node needs no BPF; without BPF here, only
// what others report is used.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "bpf/call_watch.h"
#include "mm/page_protocol.h"
#include "monitor/node/futex_wake.h"
#include "transport/link.h"
#include "transport/loop.h"

namespace gpr {

class FutexNews {
public:
    // tid is 0 if the thread is no longer known.
    using OnWake = std::function<void(pid_t pid, pid_t tid, const FutexWakeCall&)>;

    explicit FutexNews(Loop& loop) : loop_(loop) {}

    // Adds a node that this one has a link to. To be called before use().
    void add_peer(NodeId node, Link& link) { peers_.push_back({node, &link, {}, {}}); }
    // Another peer has taken the place of this one. Nothing is known of its waiters yet.
    void replace_peer(NodeId node, Link& link);
    // From now on private wakes of processes that join are reported to `on_wake`, some time after
    // they were made, and need not be intercepted.
    void use(std::unique_ptr<CallWatch> watch, OnWake on_wake);
    void stop();  // there is nobody to tell any more
    [[nodiscard]] bool watched() const { return watch_ != nullptr; }
    // pid: as this node's kernel sees it; name: as the session does.
    Result<> join(pid_t pid, pid_t name, StopsAtEnd stops);
    // Whether the watch reports what this call wakes. If it does not, and the call may move waiters
    // to another word, records that word.
    [[nodiscard]] bool tells(uint32_t number, const uint64_t (&args)[6]);

    // A call that the watch does not see is about to move waiters to this word.
    void moves_to(uint64_t address) {
        if (watch_) watch_->count_for_ever(address);
    }

    // Sends the wake to the peers that may have waiters for it. Returns how many. from: the node
    // that has sent it to us.
    unsigned tell(pid_t name, const FutexWakeCall& wake, std::optional<NodeId> from = std::nullopt);
    static FutexWakeCall told(wire::FutexWake::Reader wake);
    // To the peers that may have waiters at this word, except for one.
    [[nodiscard]] std::vector<Link*> links_to_waiters(uint64_t address,
                                                      std::optional<NodeId> but) const;

    // A peer's summary has arrived.
    void heard(NodeId from, wire::FutexWaiters::Reader waiters);

private:
    struct Peer {
        NodeId node = 0;
        Link* link = nullptr;
        // Of waiters there; nullopt: not heard yet, so they may be anywhere.
        std::optional<WaiterSummary> waiting;
        std::optional<WaiterSummary> told;
    };

    // The waiters at this node's peers, except for one peer.
    [[nodiscard]] WaiterSummary waiting_elsewhere(const Peer* but = nullptr) const;
    void tell_before_frames(Peer& peer);
    void tell_waiters(Peer& peer);
    [[nodiscard]] static bool may_wait_at(const Peer& peer, uint64_t address) {
        return !peer.waiting || peer.waiting->may_wait(address);
    }

    Loop& loop_;
    std::vector<Peer> peers_;
    std::unique_ptr<CallWatch> watch_;
    OnWake on_wake_;
    Watch wakes_;
};

}  // namespace gpr
