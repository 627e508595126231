// A worker that has been executed before there is a session for it, so that a session need not wait
// for that. There is at most one; it serves one session, as any other worker.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

#include "acceptor/daemon/session_order.h"
#include "base/fd.h"

namespace gpr {

class SpareWorker {
public:
    using Clock = std::chrono::steady_clock;

    // is_wanted: else there is never one.
    explicit SpareWorker(bool is_wanted) : is_wanted_(is_wanted) {}

    // To be called when there is nothing else to do: starts one if it is time.
    void look();
    // How long to wait at most until look() has something to do, as for poll(2). most: for others.
    [[nodiscard]] int wait_ms(int most) const;
    // Hands over the session. nullopt if there is none: the session needs a worker of its own.
    std::optional<pid_t> take(const OrderedSession& session);
    // A child of the daemon has ended. True if it was the one that waited.
    bool note_end(pid_t pid);
    // It ends by itself, in time.
    void dismiss();

private:
    bool is_wanted_;
    pid_t pid_ = 0;  // of the one that waits
    Fd channel_;     // where it waits; it ends if this is closed
    Clock::time_point next_at_{};
};

}  // namespace gpr
