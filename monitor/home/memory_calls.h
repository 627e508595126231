// System calls that change address spaces, of threads on any node: checked, and made by home's
// kernel.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/address.h"
#include "mm/page_protocol.h"
#include "monitor/home/part.h"
#include "monitor/paging/range_locks.h"
#include "syscall/marshal.h"

namespace gpr::home {

class MemoryCalls {
public:
    explicit MemoryCalls(Home& home) : home_(home) {}

    int64_t lock_memory(HomeProcess& process, pid_t tid, uint32_t number,
                        std::span<const uint64_t, 6> args);
    // Of a process that acceptors have just been told of.
    void tell_locks(HomeProcess& process);
    static std::vector<Range> hidden_by(HomeProcess& process, const Notification& n);
    Task<void> save_hidden(HomeProcess& process, Notification n);
    Task<void> memory_call(HomeProcess& process, HomeThread& thread, Notification n);
    Task<void> map_for(HomeProcess& process, HomeThread& thread, Frame frame);
    Task<void> change_memory_for(HomeProcess& process, HomeThread& thread, Frame frame);
    Task<int64_t> change_memory(HomeProcess& process, StubThread& stub, Notification n,
                                Notification made, pid_t caller);
    Task<void> brk_for(HomeProcess& process, HomeThread& thread, Frame frame);

    Task<int64_t> refusal(HomeProcess& process, StubThread& stub, Notification n, pid_t caller);

private:
    Task<paging::RangeLocks::Guard> lock_changed(HomeProcess& process, Notification n);
    Task<int64_t> make_change(HomeProcess& process, StubThread& stub, Notification n,
                              Notification made, pid_t caller);
    Task<bool> note_private(HomeProcess& process, SyscallArguments args, Range range, int fd,
                            NodeId birth);
    int place_error(const Notification& n) const;
    static int lock_error(HomeProcess& process, const Notification& n, pid_t caller);
    Task<int64_t> unmap_parts(HomeProcess& process, StubThread& stub, Notification n, pid_t caller);
    Task<int64_t> move_parts(HomeProcess& process, StubThread& stub, Notification n, pid_t caller);

    Home& home_;
};

}  // namespace gpr::home
