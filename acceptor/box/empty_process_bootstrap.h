// What happens in the child between the fork and the stub. Used by sandbox.cc only.
#pragma once

#include <atomic>
#include <cstdint>

#include "acceptor/box/empty_process.h"
#include "acceptor/box/session_limits.h"

namespace gpr {

enum class BootstrapState : uint32_t { running, failed, installing_filter, in_stub };

// In memory shared with the worker: once the filter is installed, the child has no other way to
// report its progress.
struct BootstrapReport {
    std::atomic<BootstrapState> state{BootstrapState::running};
    const char* failed_step = nullptr;  // a string literal, so valid in parent and child
    int error = 0;
    bool wait_killable = false;
};
static_assert(std::atomic<BootstrapState>::is_always_lock_free);

struct Bootstrap {
    const EmptyProcessOptions& options;
    int init_pidfd;
    int time_namespace;  // -1: none
    uint64_t capabilities;
    bool has_user;  // the box has a user namespace
    const ProcessLimits& limits;
    BootstrapReport& report;
};

// Turns the calling process, a fork of the worker, into an empty process. The worker may have a
// thread beside the one that forks (transport/idle_thread.h), which may hold the lock of malloc():
// on the way to success nothing is allocated.
[[noreturn]] void bootstrap_empty_process(const Bootstrap& bootstrap);

// Waits until the child is in the stub. An error says why it failed, died or took too long.
Result<> await_bootstrap(const BootstrapReport& report, int pidfd);

}  // namespace gpr
