// A session's box on the acceptor: namespaces without files, network or foreign processes, and an
// init process that ends everything in them when the worker dies.
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

// What is added to this host's clocks to get the initiator's.
struct ClockOffsets {
    int64_t monotonic_ns = 0;
    int64_t boottime_ns = 0;
};

// `ours` is taken when the initiator's sample arrives, so the box is behind by the way here: a
// thread that crosses, which takes at least as long, never sees time step back.
ClockOffsets clock_offsets(const ClockSample& initiators, const ClockSample& ours);

// A part of this host's file tree that is seen in the box.
struct SandboxView {
    std::string place;   // where, absolute
    std::string source;  // what, absolute; it exists
    bool operator==(const SandboxView&) const = default;
};

struct SandboxOptions {
    // Read-only, but for devices. What lies below another comes after it.
    std::vector<SandboxView> views;
    std::string host_name;    // empty: "gpr"
    std::string domain_name;  // NIS domain name; empty: the kernel's "(none)"
    std::optional<ClockOffsets> clock_offsets;
    int cgroup_fd = -1;    // a cgroup v2 directory for all that is in the box
    SessionLimits limits;  // that this has; without any it is one only if that can be
    ProcessLimits process_limits;
    // The only one needed inside: clone3 with chosen ids. Everything else is dropped for good.
    uint64_t capabilities = uint64_t{1} << CAP_CHECKPOINT_RESTORE;
    bool host_network = false;  // that of the worker; else the box has none
    // Of this host, who the box's processes are and its root is, in a user namespace of its own; 0:
    // the worker's, and no such namespace.
    uint32_t user = 0;
    int user_lock = -1;  // what lives as long as the box does
};

// Belongs to the thread that created it: its processes are that thread's children and it is told of
// their end through waitpid. That thread must be the only one of its process.
class Sandbox {
public:
    static Result<std::unique_ptr<Sandbox>> create(const SandboxOptions& options);

    // Kills all that is in the box and waits until it is gone. Wait statuses of its processes that
    // nobody asked for are lost; other children of the worker are left alone.
    ~Sandbox();
    Sandbox(const Sandbox&) = delete;
    Sandbox& operator=(const Sandbox&) = delete;

    // A direct child of the worker whose pid in the box is `wanted_pid`. EEXIST: that one is taken
    // (1 always is). The caller seizes it with ptrace and removes the inherited mappings.
    Result<EmptyProcess> spawn(pid_t wanted_pid, const EmptyProcessOptions& options);

    // Which limit ended what was in the box: "went beyond ...". Empty: none.
    [[nodiscard]] std::string limit_exceeded() const;
    // Whether its limits allow so many more processes and threads than there are.
    [[nodiscard]] bool has_room_for_tasks(uint64_t there_are, uint64_t more) const;

    // In the worker's pid namespace. The worker must not wait for it.
    [[nodiscard]] pid_t init_pid() const { return init_pid_; }
    // One more than the highest pid that a process in it can have.
    [[nodiscard]] pid_t limit_of_ids() const { return limit_of_ids_; }
    // False: not asked for, or the kernel has no time namespaces; clocks are then this host's.
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
    Fd alive_;  // init ends when the last copy of this closes
    pid_t init_pid_ = -1;
    pid_t limit_of_ids_ = 32768;
    int cgroup_fd_ = -1;
    SessionLimits limits_;
    ProcessLimits process_limits_;
    uint64_t capabilities_ = 0;
    uint32_t user_ = 0;
    std::string pid_namespace_link_;  // as /proc/PID/ns/pid reads
};

}  // namespace gpr
