// Forks of a process with much memory at the acceptor. It stays there, and each node's kernel
// copies what that node has. docs/decisions/0018-forks-copy-where-pages-are.md
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>

#include "base/result.h"
#include "monitor/home/part.h"
#include "syscall/marshal.h"
#include "transport/wire.h"

namespace gpr {
struct Birth;
struct ForkedMemory;
struct ThreadContext;
}  // namespace gpr

namespace gpr::home {

struct RemoteNode;

struct ForkResult {
    int64_t pid = 0;  // or the kernel's error
    int32_t pidfd = -1;
};

class ForksInPlace {
public:
    explicit ForksInPlace(Home& home) : home_(home) {}

    [[nodiscard]] bool copies_in_place(const HomeThread& thread,
                                       wire::CallRequest::Reader call) const;
    Task<void> on_barrier(Frame frame);
    void on_frozen(const RemoteNode& node, wire::Freeze::Reader frozen);
    static void on_copied(RemoteNode& node, wire::ProcessStarted::Reader copied);
    Task<void> fork_in_place(HomeProcess& process, HomeThread& thread, Frame frame, Birth birth);
    Task<void> start_copy(HomeThread& thread, ThreadContext context,
                          std::shared_ptr<ForkedMemory> memory);
    Task<void> note_fork_advice(HomeProcess& process, SyscallArguments args);

private:
    Task<AsyncMutex::Guard> hold_still(std::shared_ptr<Fragment> fragment);
    Task<ForkResult> fork_here(HomeThread& thread, uint64_t flags, Birth birth);
    void fork_there(pid_t parent, pid_t child, uint64_t flags, ForkedMemory& memory);
    void fork_nothing(pid_t parent);
    Task<Result<void>> prepare_copy(HomeProcess& process, HomeThread& thread,
                                    const ThreadContext& context, ForkedMemory& memory);

    Home& home_;
    // How many barriers have come back, by process, while a fork waits for them.
    std::map<pid_t, unsigned> barriers_;
};

}  // namespace gpr::home
