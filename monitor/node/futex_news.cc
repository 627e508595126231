#include "monitor/node/futex_news.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>

#include <algorithm>

#include "syscall/park.h"

namespace gpr {

static_assert(GPR_OWN_HIGH_WORD == stub_high_word);

void FutexNews::use(std::unique_ptr<CallWatch> watch, OnWake on_wake) {
    watch_ = std::move(watch);
    on_wake_ = std::move(on_wake);
    watch_->set_elsewhere(waiting_elsewhere());
    for (Peer& peer : peers_) tell_before_frames(peer);
    wakes_ = loop_.watch(watch_->fd(), POLLIN, [this](uint32_t) {
        watch_->fetch([this](const WatchedWake& wake) {
            on_wake_(wake.pid, wake.tid, {wake.address, wake.count, wake.bitset, false});
        });
    });
}

void FutexNews::tell_before_frames(Peer& peer) {
    peer.link->before_frame([this, &peer, link = peer.link] {
        if (peer.link == link) tell_waiters(peer);
    });
}

void FutexNews::replace_peer(NodeId node, Link& link) {
    auto peer = std::ranges::find(peers_, node, &Peer::node);
    if (peer == peers_.end()) return;
    *peer = {node, &link, {}, {}};
    if (!watch_) return;
    watch_->set_elsewhere(waiting_elsewhere());
    tell_before_frames(*peer);
}

void FutexNews::stop() {
    wakes_.reset();
    watch_.reset();
}

Result<> FutexNews::join(pid_t pid, pid_t name, StopsAtEnd stops) {
    if (!watch_) return {};
    return watch_->join(pid, name, stops);
}

bool FutexNews::tells(uint32_t number, const uint64_t (&args)[6]) {
    if (!watch_ || number != SYS_futex) return false;
    auto operation = static_cast<uint32_t>(args[1]);
    switch (operation & static_cast<uint32_t>(FUTEX_CMD_MASK)) {
        case FUTEX_WAKE:
        case FUTEX_WAKE_BITSET: return operation & FUTEX_PRIVATE_FLAG;
        case FUTEX_REQUEUE:
        case FUTEX_CMP_REQUEUE:
        case FUTEX_CMP_REQUEUE_PI: watch_->count_for_ever(args[4]); return false;
        default: return false;
    }
}

WaiterSummary FutexNews::waiting_elsewhere(const Peer* but) const {
    WaiterSummary all;
    for (const Peer& peer : peers_) {
        if (&peer != but) all.join(peer.waiting ? *peer.waiting : WaiterSummary::everything());
    }
    return all;
}

void FutexNews::tell_waiters(Peer& peer) {
    if (!watch_) return;
    WaiterSummary waiting = watch_->waiting();
    if (peers_.size() > 1) waiting.join(waiting_elsewhere(&peer));
    if (peer.told == waiting) return;
    peer.told = waiting;
    FrameBuilder frame;
    auto bits = frame.session().initFutexWaiting().initBits(GPR_WAITER_WORDS);
    for (unsigned i = 0; i < bits.size(); i++) bits.set(i, waiting.words[i]);
    peer.link->send(frame, Priority::urgent);
}

unsigned FutexNews::tell(pid_t name, const FutexWakeCall& wake, std::optional<NodeId> from) {
    FrameBuilder frame;
    auto out = frame.session().initFutexWoken();
    out.setPid(name);
    out.setAddress(wake.address);
    out.setCount(wake.count);
    out.setBitset(wake.bitset);
    out.setShared(wake.shared);
    unsigned told = 0;
    for (const Peer& peer : peers_) {
        if (!may_wait_at(peer, wake.address) || peer.node == from) continue;
        peer.link->send(frame, Priority::urgent);
        told++;
    }
    return told;
}

std::vector<Link*> FutexNews::links_to_waiters(uint64_t address, std::optional<NodeId> but) const {
    std::vector<Link*> links;
    for (const Peer& peer : peers_) {
        if (may_wait_at(peer, address) && peer.node != but) links.push_back(peer.link);
    }
    return links;
}

FutexWakeCall FutexNews::told(wire::FutexWake::Reader wake) {
    return {wake.getAddress(), wake.getCount(), wake.getBitset(), wake.getShared()};
}

void FutexNews::heard(NodeId from, wire::FutexWaiters::Reader waiters) {
    WaiterSummary summary = WaiterSummary::everything();
    auto bits = waiters.getBits();
    // Another size means another hash, so any page may have waiters.
    if (bits.size() == GPR_WAITER_WORDS) std::copy(bits.begin(), bits.end(), summary.words.begin());
    for (Peer& peer : peers_) {
        if (peer.node == from) peer.waiting = summary;
    }
    if (watch_) watch_->set_elsewhere(waiting_elsewhere());
}

}  // namespace gpr
