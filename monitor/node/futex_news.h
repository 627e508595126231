// What two nodes tell each other about who waits for futexes (DESIGN 4.4): each says, before any
// frame that could carry a page away, at which pages its threads wait, so that wakes go only where
// they may find somebody. Needs no BPF at the other node, and works one way without it here.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "bpf/call_watch.h"
#include "monitor/node/futex_wake.h"
#include "transport/link.h"
#include "transport/loop.h"

namespace gpr {

class FutexNews {
public:
    // The thread is 0 where it is not known any more.
    using Waked = std::function<void(pid_t pid, pid_t tid, const FutexWakeCall&)>;

    FutexNews(Loop& loop, Link& link) : loop_(loop), link_(link) {}

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

    // Tells the other node, unless nobody there can be waiting for it; false if so.
    bool tell(pid_t name, const FutexWakeCall& wake);
    static FutexWakeCall told(wire::FutexWake::Reader wake);

    // The other node's summary has come.
    void heard(wire::FutexWaiters::Reader waiters);

private:
    void tell_waiters();

    Loop& loop_;
    Link& link_;
    std::optional<WaiterSummary> elsewhere_;  // nothing heard: they may wait anywhere
    std::optional<WaiterSummary> told_;
    std::unique_ptr<CallWatch> watch_;
    Waked waked_;
    Watch wakes_;
};

}  // namespace gpr
