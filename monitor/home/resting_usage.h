// What processes that rest have used at acceptors, and their children, is added to what their calls
// report: CPU time must not decrease when a process comes home. The thread is stopped behind the
// call.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>

#include "monitor/home/part.h"
#include "monitor/tracee/notifier.h"
#include "monitor/tracee/waits.h"

namespace gpr::home {

class RestingUsage {
public:
    explicit RestingUsage(Home& home) : home_(home) {}

    // A call of a process that rests, which its filter has reported and which waits for an answer.
    // False if nothing has to be added; true if the call is taken care of.
    bool takes_reported(HomeThread& thread, const Notification& n);
    // The same for a call before which the thread is stopped.
    bool takes_stopped(HomeThread& thread, const Notification& n);
    // False if the stop has nothing to do with such a call.
    bool takes_stop(HomeThread& thread, WaitStatus status);
    // The process does not rest any more, and its threads make no call.
    void forget(const HomeProcess& process);

private:
    enum class Stage : uint8_t {
        reported,   // it waits for an answer, and shall stop instead
        begins,     // it begins the call again, and stops before it
        makes_call  // it stops behind the call
    };
    struct Pending {
        Notification call;
        Stage stage = Stage::reported;
    };
    [[nodiscard]] bool adds_to(const HomeThread& thread, const Notification& n) const;
    static bool goes_on(HomeThread& thread, Pending& pending, WaitStatus status);
    static void add(HomeThread& thread, const Notification& n);

    Home& home_;
    std::map<pid_t, Pending> pending_;  // by thread
};

}  // namespace gpr::home
