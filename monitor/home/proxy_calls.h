// Calls that the monitor makes for a thread at home: about memory that belongs to the parent of a
// process that is not split, or about descriptors of an acceptor; and those that it emulates:
// ptrace(2), and the waits of tracers. Signals may interrupt the thread meanwhile, but not the
// call, which is made once.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "monitor/home/part.h"

namespace gpr {
struct ProxyCall;
struct WaitStatus;
}  // namespace gpr

namespace gpr::home {

class ProxyCalls {
public:
    explicit ProxyCalls(Home& home) : home_(home) {}

    // To be called before anything is changed. nullptr if there is nothing to do: the thread was
    // interrupted, repeats a call that has been made, and gets the result of that.
    Task<std::shared_ptr<ProxyCall>> begin(pid_t pid, Notification n);
    // nullopt: it has not been made, and the thread makes it itself.
    void finish(pid_t pid, const Notification& n, const std::shared_ptr<ProxyCall>& call,
                std::optional<int64_t> result);
    // Instead of finish(): nothing has been done, and the thread makes the call again.
    void make_again(pid_t pid, const Notification& n, const std::shared_ptr<ProxyCall>& call);
    // Whether the thread has stopped in such a call. Its stop is then handled after the call.
    bool holds_stop(HomeThread& thread, WaitStatus status);

private:
    void give_result(pid_t pid, const Notification& n, const std::shared_ptr<ProxyCall>& call);
    Task<void> after_call(pid_t pid, pid_t tid, WaitStatus status);

    Home& home_;
};

}  // namespace gpr::home
