// Descriptor numbers of home that are known to be closed: calls about them are answered here, with
// EBADF. docs/decisions/0048-numbers-that-stay-closed.md
#pragma once

#include "acceptor/worker/part.h"

namespace gpr::worker {

class ClosedNumbers {
public:
    explicit ClosedNumbers(Worker& worker) : worker_(worker) {}

    // Whether the call fails because its first argument is such a number.
    static bool is_about_one(const RemoteProcess& process, const Notification& n);
    // To be called when a descriptor may be opened at home: by a thread or a call that goes there.
    static void forget(RemoteProcess& process);
    void forget_for(RemoteProcess& process, const Notification& n);

    // Home has answered that a number is not open. If the program has closed several such numbers,
    // asks home about the next ones in advance.
    Task<void> look_beyond(RemoteProcess& process, RemoteThread& thread, const Notification& n);

private:
    [[nodiscard]] bool may_look(const RemoteProcess& process, const RemoteThread& thread) const;

    Worker& worker_;
    // Some descriptor table is shared by processes, and not all calls of each are seen here.
    bool tables_are_shared_ = false;
};

}  // namespace gpr::worker
