// Numbers of home that nobody has opened: what is asked about them is answered here, with EBADF.
// docs/decisions/0048-numbers-that-stay-closed.md
#pragma once

#include "acceptor/worker/part.h"

namespace gpr::worker {

class ClosedNumbers {
public:
    explicit ClosedNumbers(Worker& worker) : worker_(worker) {}

    // Whether the call is about one of them, and about nothing before that.
    static bool is_about_one(const RemoteProcess& process, const Notification& n);
    // Something may be opened at home: a thread goes there, or a call.
    static void forget(RemoteProcess& process);
    void forget_for(RemoteProcess& process, const Notification& n);

    // Home has said that a number is not open: whoever closes many closes the next ones soon.
    Task<void> look_beyond(RemoteProcess& process, RemoteThread& thread, const Notification& n);

private:
    [[nodiscard]] bool may_look(const RemoteProcess& process, const RemoteThread& thread) const;

    Worker& worker_;
    bool tables_are_shared_ = false;  // by processes, whose calls are not all seen here
};

}  // namespace gpr::worker
