// What a debugger at home watches of threads that run here: monitor/home/thread_traps.h.
#pragma once

#include <sys/types.h>

#include <map>

#include "acceptor/worker/part.h"
#include "monitor/node/debug_traps_wire.h"
#include "monitor/tracee/debug_traps.h"

namespace gpr::worker {

class Debugged {
public:
    explicit Debugged(Worker& worker) : worker_(worker) {}

    // Home says what is watched. False if the call is another one.
    [[nodiscard]] bool takes_mirrored(const Frame& frame);
    // The thread is in its stub, and about to run the program.
    Task<void> equip(RemoteThread& thread);
    // To be asked first about each stop: it may be that of a thread that makes a call of which home
    // has been told.
    [[nodiscard]] bool takes_stop(pid_t host_tid, const WaitStatus& status);
    // The thread has stopped at a call: home is told. False if the signal is another one.
    [[nodiscard]] bool takes_call(RemoteThread& thread, const siginfo_t& info);
    // Before a thread that has been told of comes home: if it stands at a call, that is to be made
    // again.
    static void take_call_back(const RemoteThread& thread);
    // Home lets the thread make it. False if it was another signal.
    [[nodiscard]] bool let_call(const RemoteThread& thread, const siginfo_t& info);

private:
    [[nodiscard]] DebugTraps wanted(const RemoteThread& thread) const;
    [[nodiscard]] bool is_equipped(const RemoteThread& thread) const;

    Worker& worker_;
    PassedCalls passed_calls_;
    std::map<pid_t, TrapsOfThreads> watched_;  // by the host pid of the process
    std::map<pid_t, DebugTraps> given_;        // to kernel threads here, by host tid
};

}  // namespace gpr::worker
