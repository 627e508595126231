// Calls of threads here that home makes: they are sent there with the memory that they need, and
// their answers come back.
#pragma once

#include <cstdint>

#include "acceptor/worker/part.h"

namespace gpr::worker {

struct NewTask;
class WaitHere;

class Forwarding {
public:
    explicit Forwarding(Worker& worker) : worker_(worker) {}

    // here: it waits for something at this node, too.
    Task<void> forward(RemoteProcess& process, RemoteThread& thread, Notification n,
                       WaitHere* here = nullptr);
    Task<void> end_forwarded(RemoteProcess& process, RemoteThread& thread, Notification n,
                             int64_t result);
    void give_answer(RemoteThread& thread, uint64_t id, int64_t result);
    // As forward, but gives the result to the caller instead of to the thread.
    // met_shared: becomes true, and nothing is asked, if the call is about shared memory.
    Task<int64_t> ask_home(RemoteProcess& process, RemoteThread& thread, const Notification& n,
                           bool reply, const NewTask* task = nullptr, bool* met_shared = nullptr,
                           uint32_t wait = 0, uint64_t file = 0);
    Task<void> call_done(Frame frame);

    // Names a wait at home, so that it can be interrupted.
    uint32_t next_wait();
    void interrupt_at_home(const RemoteThread& thread, uint32_t wait);

private:
    Worker& worker_;
    uint32_t last_wait_ = 0;
};

}  // namespace gpr::worker
