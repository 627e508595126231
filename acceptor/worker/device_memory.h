// Memory of the program that devices of this host use: it must be here, and stay, before a call
// that lets a device pin it. docs/decisions/0070-memory-for-devices.md
#pragma once

#include <memory>
#include <vector>

#include "acceptor/worker/part.h"
#include "base/address.h"
#include "monitor/tracee/filter_notifier.h"

namespace gpr::worker {

class DeviceMemory {
public:
    explicit DeviceMemory(Worker& worker) : worker_(worker) {}

    // Whether the process has something open here that may pin memory. While it has, new shared
    // memory is this host's alone: shared objects could not be taken from a device.
    static bool may_be_pinned_by(const RemoteProcess& process);

    // io_uring_register and setsockopt.
    Task<void> pin_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> ioctl_call(RemoteProcess& process, RemoteThread& thread, Notification n);

private:
    Task<void> run_with(std::shared_ptr<Fragment> fragment,
                        std::shared_ptr<FilterNotifier> notifier, Notification n, pid_t host_tid,
                        std::vector<Range> ranges);
    Task<void> release_when_pinned(pid_t host_tid, uint64_t held, uint64_t pages);
    Task<std::vector<Range>> ranges_to_pin(std::shared_ptr<Fragment> fragment, Notification n);
    Task<std::vector<Range>> ranges_in_argument(std::shared_ptr<Fragment> fragment, Notification n);

    Worker& worker_;
};

}  // namespace gpr::worker
