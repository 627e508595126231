// Answers home's questions about what is here, for `gpr threads` and the like; keeps the tally.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "acceptor/worker/part.h"
#include "monitor/node/usage.h"
#include "monitor/tracee/thread_status.h"
#include "transport/loop.h"

namespace gpr {
class SharedTally;
struct ObservedThread;
}  // namespace gpr

namespace gpr::worker {

class Observations {
public:
    explicit Observations(Worker& worker) : worker_(worker) {}

    Task<void> answer(Frame frame);
    // Writes the tally at intervals from now on, for as long as the session lasts.
    void keep(SharedTally& tally);
    // A process of the session has ended, which has used this much here.
    void note_ended(const Usage& used);
    void note_arrival() { arrivals_++; }
    // Writes the final counts.
    void note_link_closed();
    // The thread is in a stop that nothing else awaits. True if where_stands() has stopped it: if
    // it had begun to wait by then, the program must not notice the interruption.
    bool on_stop(pid_t host_tid);

private:
    // How many pages are here of each range that the frame asks about.
    Task<std::vector<uint64_t>> resident(pid_t pid, Frame frame);

    // Stops a thread that computes here for a moment to see where it stands. nullopt if it waits or
    // is in the stub.
    Task<std::optional<Standing>> where_stands(pid_t pid, pid_t tid);
    Task<void> add_standings(std::vector<ObservedThread>& threads);
    void write(SharedTally& tally);

    using Stop = OneShot<std::optional<Standing>>;

    Worker& worker_;
    std::map<pid_t, std::shared_ptr<Stop>> wanted_;  // by host tid: threads being stopped for it
    SharedTally* tally_ = nullptr;                   // nullptr: nobody reads one
    Clock::time_point written_;                      // when the tally was last written
    uint64_t ended_ns_ = 0;                          // CPU time of processes that have ended
    uint64_t arrivals_ = 0;                          // of threads
};

}  // namespace gpr::worker
