// Threads come here from home, and leave for it: where code of the executable is missing, where
// gravity draws them, or by chance, for tests.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "acceptor/worker/part.h"
#include "base/address.h"
#include "monitor/rules/chaos.h"

namespace gpr {
struct ThreadContext;
}  // namespace gpr

namespace gpr::worker {

class Crossings {
public:
    explicit Crossings(Worker& worker) : worker_(worker) {}

    // Those of this process from now on, as far as they may be reasons to leave.
    void watch_faults(const RemoteProcess& process, uint64_t chaos_seed);
    // A page that another node's device has: the thread goes to it by way of home.
    Task<void> pinned_fault(std::shared_ptr<Fragment> fragment, Address at, pid_t tid);
    Task<void> code_fault(std::shared_ptr<Fragment> fragment, Address at, bool write, pid_t tid);
    bool leaves_by_chance(const RemoteThread& thread, const Notification& n);
    static bool is_drawn_home(const RemoteProcess& process, const RemoteThread& thread,
                              const Notification& n);
    Task<void> leave_at_call(RemoteThread& thread, Notification n, bool by_gravity = false);
    Task<void> arrive(Frame frame);
    // A thread that has stopped, of a process that is wanted at home.
    Task<void> come_home(RemoteThread& thread);

private:
    // A thread that faulted, and has been asked to stop.
    struct Stopping {
        std::shared_ptr<Fragment> fragment;
        Address at{};
        bool write = false;
        pid_t tid = 0;
        std::shared_ptr<bool> stopped;
        int looks = 0;  // so often it had not
    };
    bool may_leave_at_fault(Fragment& fragment, Address at, bool write, pid_t tid);
    [[nodiscard]] bool is_used_at_home(Fragment& fragment, Address at) const;
    void serve_if_stuck(Stopping stopping);
    Task<void> depart(std::shared_ptr<Fragment> fragment, RemoteThread& thread, Address at,
                      bool write, bool by_gravity, bool pinned = false);
    Task<void> send_home(RemoteThread& thread, const ThreadContext& context, bool visit = false,
                         bool by_gravity = false);

    Worker& worker_;
    std::unique_ptr<Chaos> chaos_;
};

}  // namespace gpr::worker
