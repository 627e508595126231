// Somebody looks at the session, and home asks what there is here.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "acceptor/worker/part.h"
#include "monitor/node/usage.h"
#include "monitor/tracee/thread_view.h"
#include "transport/loop.h"

namespace gpr {
struct ObservedThread;
struct SessionTally;
}  // namespace gpr

namespace gpr::worker {

class Observations {
public:
    explicit Observations(Worker& worker) : worker_(worker) {}

    Task<void> answer(Frame frame);
    // From now on, now and then, for as long as the session lasts.
    void keep(SessionTally& tally);
    // A process of the session has ended, and used so much here.
    void note_ended(const Usage& used);
    void note_arrival() { arrivals_++; }
    // The counts are final.
    void note_link_closed();
    // The thread is in a stop that nobody awaits; it is about to go on. Whether it was stopped for
    // where_stands(): then it may have begun to wait meanwhile, and must not notice.
    bool on_stop(pid_t host_tid);

private:
    // Of the process, as home asks: begin and end of each range, in turn.
    Task<std::vector<uint64_t>> resident(pid_t pid, Frame frame);

    // Where a thread stands that computes here, for which it is stopped for a moment; nothing of
    // one that waits, which must not notice.
    Task<std::optional<Standing>> where_stands(pid_t pid, pid_t tid);
    Task<void> add_standings(std::vector<ObservedThread>& threads);
    void write(SessionTally& tally);

    using Stop = OneShot<std::optional<Standing>>;

    Worker& worker_;
    std::map<pid_t, std::shared_ptr<Stop>> wanted_;  // by host tid: who is to tell where it stands
    SessionTally* tally_ = nullptr;                  // none: nobody keeps one
    Clock::time_point written_;                      // when it was last written
    uint64_t ended_ns_ = 0;                          // CPU time of processes that have ended
    uint64_t arrivals_ = 0;                          // of threads
};

}  // namespace gpr::worker
