// The program's memory calls: private anonymous memory is mapped here, everything else at home.
#pragma once

#include <cstdint>

#include "acceptor/worker/part.h"
#include "base/address.h"

namespace gpr::worker {

class MemoryCalls {
public:
    explicit MemoryCalls(Worker& worker) : worker_(worker) {}

    Task<void> map_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> unmap_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<int64_t> unmap(RemoteProcess& process, Range range);
    Task<void> protect_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    void note_limit(RemoteProcess& caller, const Notification& n);

private:
    static Task<int64_t> try_size(RemoteProcess& process, Notification n);

    Worker& worker_;
};

}  // namespace gpr::worker
