// Forks in place: the child's fragment here is a fork of its parent's, and memory stays where it
// is. docs/decisions/0018-forks-copy-where-pages-are.md
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <vector>

#include "acceptor/worker/part.h"
#include "base/fd.h"
#include "transport/wire.h"

namespace gpr {
class StubThread;
}  // namespace gpr

namespace gpr::worker {

class Forks {
public:
    explicit Forks(Worker& worker);

    [[nodiscard]] uint64_t own_pages(const RemoteProcess& process) const;
    Task<void> on_barrier(Frame frame);
    Task<void> fork_process(Frame frame);
    void on_newborn(RemoteProcess& parent, pid_t host_tid);

private:
    Task<Result<RemoteProcess*>> clone_memory(RemoteProcess& parent, pid_t pid, bool no_handlers);
    Task<Result<void>> use_mailbox(RemoteThread& leader, user_regs_struct regs);
    Task<Result<void>> finish_copy(RemoteProcess& process, wire::ProcessFork::Reader fork,
                                   std::vector<Frame> layout);
    Task<Result<void>> open_uffd(RemoteProcess& process, StubThread& stub);

    Worker& worker_;
    Fd uffd_device_;  // for making userfaultfds in processes of the box
};

}  // namespace gpr::worker
