// A session's sandbox ("box") on an acceptor: namespaces without files, network or other processes,
// and an init process with which everything in them ends when the worker dies.
#pragma once

#include <linux/capability.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acceptor/box/empty_process.h"
#include "acceptor/box/session_limits.h"
#include "base/fd.h"
#include "base/result.h"
#include "transport/host.h"

namespace gpr {

struct BootstrapReport;

// To be added to this host's clocks to get home's.
struct ClockOffsets {
    int64_t monotonic_ns = 0;
    int64_t boottime_ns = 0;
};

// `ours` is taken when home's sample arrives, so the box's clock is late by the sample's travel
// time. A thread that crosses takes at least as long, so it never sees time go backwards.
ClockOffsets clock_offsets(const ClockSample& initiators, const ClockSample& ours);

// A part of this host's file tree that is mounted in the box.
struct SandboxMount {
    std::string place;   // path in the box, absolute
    std::string source;  // path on this host, absolute; exists
    bool operator==(const SandboxMount&) const = default;
};

struct SandboxOptions {
    // Read-only, except for devices. A mount below another one comes after it.
    std::vector<SandboxMount> mounts;
    std::string host_name;    // empty: "gpr"
    std::string domain_name;  // NIS domain name; empty: the kernel's "(none)"
    std::optional<ClockOffsets> clock_offsets;
    int cgroup_fd = -1;    // a cgroup v2 directory for everything in the box
    SessionLimits limits;  // of that cgroup; without limits the cgroup is optional
    ProcessLimits process_limits;
    // The only one needed in the box, for clone3 with set_tid. All others are dropped for good.
    uint64_t capabilities = uint64_t{1} << CAP_CHECKPOINT_RESTORE;
    bool host_network = false;  // the worker's network; else the box has none
    // The user of this host that the box's processes are, root included, in a user namespace of
    // their own; 0: the worker's user, without such a namespace.
    uint32_t user = 0;
    int user_lock = -1;  // a descriptor that is kept open as long as the box exists
};

// Belongs to the thread that created it, which must be the only one of its process: the box's
// processes are its children, and it learns of their ends by waitpid.
class Sandbox {
public:
    static Result<std::unique_ptr<Sandbox>> create(const SandboxOptions& options);

    // Kills everything in the box and waits until it is gone. Pending wait statuses of its
    // processes are lost; other children of the worker are not touched.
    ~Sandbox();
    Sandbox(const Sandbox&) = delete;
    Sandbox& operator=(const Sandbox&) = delete;

    // Makes a direct child of the worker with pid `wanted_pid` in the box. EEXIST if that is taken
    // (1 always is). The caller seizes it with ptrace and removes the inherited mappings.
    Result<EmptyProcess> spawn(pid_t wanted_pid, const EmptyProcessOptions& options);

    // The limit that ended processes in the box, as "went beyond ..."; empty if none did.
    [[nodiscard]] std::string limit_exceeded() const;
    // Whether the limits allow `more` processes and threads besides those that there are.
    [[nodiscard]] bool has_room_for_tasks(uint64_t there_are, uint64_t more) const;

    // In the worker's pid namespace. The worker must not reap it.
    [[nodiscard]] pid_t init_pid() const { return init_pid_; }
    // One more than the highest pid in the box.
    [[nodiscard]] pid_t limit_of_ids() const { return limit_of_ids_; }
    // False if not requested, or if the kernel has no time namespaces; then clocks are this host's.
    [[nodiscard]] bool has_time_namespace() const { return static_cast<bool>(time_namespace_); }

private:
    Sandbox() = default;
    Result<> start_init(const SandboxOptions& options);
    Result<> map_user() const;
    static Result<> finish_spawn(const BootstrapReport& report, EmptyProcess& made);
    void end();
    void reap_processes();

    Fd own_pid_namespace_;  // the worker's
    Fd init_pidfd_;
    Fd time_namespace_;
    Fd alive_;  // init ends when the last copy of it is closed
    pid_t init_pid_ = -1;
    pid_t limit_of_ids_ = 32768;
    int cgroup_fd_ = -1;
    SessionLimits limits_;
    ProcessLimits process_limits_;
    uint64_t capabilities_ = 0;
    uint32_t user_ = 0;
    std::string pid_namespace_link_;  // the text of the link /proc/PID/ns/pid
};

}  // namespace gpr
