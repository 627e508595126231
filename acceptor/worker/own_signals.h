// Signals that a thread here sends to itself alone, such as by raise(3). If its handler runs at
// once, home need not make the call: the thread goes on here. The first of them is made at home,
// which shows what the kernel tells the handler about the sender.
#pragma once

#include <sys/types.h>

#include "acceptor/worker/part.h"

namespace gpr {
struct HandledSignal;
struct SignalAction;
}  // namespace gpr

namespace gpr::worker {

class OwnSignals {
public:
    explicit OwnSignals(Worker& worker) : worker_(worker) {}

    // A call that home would make. True if it has been made here.
    bool make(RemoteProcess& process, RemoteThread& thread, const Notification& n);
    // The program sets this action, or perhaps another one: with nothing in it.
    static void note_action(RemoteProcess& process, const SignalAction& action);
    // The kernel here is about to get a signal that home has passed on.
    static void note_passed(RemoteThread& thread, const HandledSignal& signal);

private:
    static bool is_handled_at_once(const RemoteProcess& process, const RemoteThread& thread,
                                   int signal);

    Worker& worker_;
};

}  // namespace gpr::worker
