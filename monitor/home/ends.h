// Ends of threads and processes, here and at the acceptors.
#pragma once

#include <sys/types.h>

#include <memory>

#include "monitor/home/part.h"
#include "syscall/marshal.h"
#include "transport/wire.h"

namespace gpr::home {

struct RemoteNode;

class Ends {
public:
    explicit Ends(Home& home) : home_(home) {}

    void on_end(HomeThread& thread);
    void on_process_gone(RemoteNode& node, wire::ProcessGone::Reader gone);
    void forget_other_threads(HomeProcess& process);
    [[nodiscard]] bool is_helper(pid_t pid) const;
    // Whether the call sends a signal to a helper, or opens it: to the program there is none.
    [[nodiscard]] bool is_helper_named(uint32_t number, const SyscallArguments& args) const;
    void end_helpers(HomeProcess& process);
    Task<void> end_remotely(HomeProcess& process, bool memory_gone, bool new_image = false);
    Task<void> finish(HomeProcess& process, HomeThread& thread);

private:
    void bury(std::unique_ptr<HomeThread> thread, HomeProcess& process);
    void forget_remotely(pid_t pid);

    Home& home_;
};

}  // namespace gpr::home
