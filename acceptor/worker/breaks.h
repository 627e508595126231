// The break (brk(2)): home lets the acceptor of a process move it up, while no thread of the
// process is elsewhere. Home's kernel hears of it in order with whatever could depend on it.
// docs/decisions/0101-acceptors-move-the-break.md
#pragma once

#include "acceptor/worker/part.h"
#include "transport/wire.h"

namespace gpr::worker {

class Breaks {
public:
    explicit Breaks(Worker& worker) : worker_(worker) {}

    // For tests: home moves every break.
    void turn_off() { is_off_ = true; }
    Task<void> break_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    // Home has answered a call of the thread.
    static void note_answer(RemoteThread& thread, wire::CallReply::Reader answer);
    // To be called when something at home may move the break: a thread that goes there, or a call.
    static void forget(RemoteProcess& process);

private:
    Task<bool> answer(RemoteProcess& process, Notification n);
    Task<bool> grow(RemoteProcess& process, uint64_t end);

    Worker& worker_;
    bool is_off_ = false;
};

}  // namespace gpr::worker
