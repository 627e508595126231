// Crossings of threads between here and home: for missing code, by gravity, or at random for tests.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "acceptor/worker/part.h"
#include "base/address.h"
#include "monitor/rules/chaos.h"
#include "monitor/tracee/restarted_calls.h"

namespace gpr {
struct ThreadContext;
}  // namespace gpr

namespace gpr::worker {

class Crossings {
public:
    explicit Crossings(Worker& worker) : worker_(worker) {}

    // From now on, page faults of this process may make its threads leave.
    void watch_faults(const RemoteProcess& process, uint64_t chaos_seed);
    // A device of another node has pinned the page: the thread goes there by way of home.
    Task<void> pinned_fault(std::shared_ptr<Fragment> fragment, Address at, pid_t tid);
    Task<void> code_fault(std::shared_ptr<Fragment> fragment, Address at, bool write, pid_t tid);
    bool leaves_by_chance(const RemoteThread& thread, const Notification& n);
    static bool is_drawn_home(const RemoteProcess& process, const RemoteThread& thread,
                              const Notification& n);
    Task<void> leave_at_call(RemoteThread& thread, Notification n, bool by_gravity = false);
    Task<void> arrive(Frame frame);
    // Whether a stopped thread is in this kernel's vdso, from where it must not leave:
    // stands_in_vdso().
    static bool is_in_vdso(const RemoteThread& thread);
    // A thread of a process that goes home has stopped. gets_signal: before a signal, which it will
    // get at home.
    Task<void> come_home(RemoteThread& thread, bool gets_signal = false);
    // Sees each stop of each thread.
    void note_stop(pid_t host_tid, WaitStatus status) { restarted_.note(host_tid, status); }

private:
    // A thread that faulted and has been asked to stop.
    struct Stopping {
        std::shared_ptr<Fragment> fragment;
        Address at{};
        bool write = false;
        pid_t tid = 0;
        std::shared_ptr<bool> stopped;
        int looks = 0;  // how often it was found not to have stopped yet
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
    RestartedCalls restarted_;
};

}  // namespace gpr::worker
