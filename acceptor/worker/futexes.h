// Futexes as an acceptor sees them: wakes here for waiters at home, and the reverse. Has what the
// nodes tell each other about waiters.
#pragma once

#include <vector>

#include "acceptor/worker/part.h"
#include "mm/page_protocol.h"
#include "monitor/node/futex_moves.h"
#include "monitor/node/futex_news.h"

namespace gpr::worker {

class Futexes {
public:
    explicit Futexes(Worker& worker);

    [[nodiscard]] FutexNews& news() { return news_; }

    void watch_futexes();
    [[nodiscard]] bool waits_for_home(const RemoteThread& thread) const;
    void use_at_home(ObjectId object);
    Task<void> futex_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> on_futex_wake(Frame frame);
    Task<void> on_futex_move(Frame frame);
    void send_futex_wake(RemoteProcess& process, const FutexWakeCall& wake);

private:
    [[nodiscard]] bool is_any_used_at_home(Fragment& fragment,
                                           const std::vector<Address>& words) const;

    Worker& worker_;
    FutexNews news_;
    FutexMoves moves_;
    bool watch_tried_ = false;
};

}  // namespace gpr::worker
