// What nodes tell each other about who waits for futexes (decision 16): each says, before any
// frame that could carry a page away, at which pages its threads wait, so that wakes go only where
// they may find somebody. Home speaks for all other nodes: what it tells an acceptor includes who
// waits at the others. Needs no BPF at the other node, and works one way without it here.
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
    // The thread is 0 where it is not known any more.
    using Waked = std::function<void(pid_t pid, pid_t tid, const FutexWakeCall&)>;

    explicit FutexNews(Loop& loop) : loop_(loop) {}

    // Each node that this one has a link to. Before use().
    void add_peer(NodeId node, Link& link) { peers_.push_back({node, &link, {}, {}}); }
    // From now on private wakes of processes that join are told to `waked`, some time after they
    // were made, and need not be stopped.
    void use(std::unique_ptr<CallWatch> watch, Waked waked);
    [[nodiscard]] bool watched() const { return watch_ != nullptr; }
    // pid: as this node's kernel knows it; name: as the session does.
    Result<> join(pid_t pid, pid_t name, Openers openers);
    // The watch tells what this call wakes. Where it does not, and the call is about to move
    // waiters to another word, this notes it.
    [[nodiscard]] bool tells(uint32_t number, const uint64_t (&args)[6]);

    // The call is about to move waiters to this word, of which the watch does not know.
    void moves_to(uint64_t address) {
        if (watch_) watch_->count_for_ever(address);
    }

    // Tells the peers where somebody may be waiting for it. Gives how many. from: the node that
    // has told us of it.
    unsigned tell(pid_t name, const FutexWakeCall& wake, std::optional<NodeId> from = std::nullopt);
    static FutexWakeCall told(wire::FutexWake::Reader wake);

    // A peer's summary has come.
    void heard(NodeId from, wire::FutexWaiters::Reader waiters);

private:
    struct Peer {
        NodeId node = 0;
        Link* link = nullptr;
        std::optional<WaiterSummary> waiting;  // there; nothing heard: they may wait anywhere
        std::optional<WaiterSummary> told;
    };

    // Who waits at this node's peers, but for one.
    [[nodiscard]] WaiterSummary waiting_elsewhere(const Peer* but = nullptr) const;
    void tell_waiters(Peer& peer);

    Loop& loop_;
    std::vector<Peer> peers_;
    std::unique_ptr<CallWatch> watch_;
    Waked waked_;
    Watch wakes_;
};

}  // namespace gpr
