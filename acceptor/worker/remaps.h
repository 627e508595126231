// mremap by threads here.
#pragma once

#include <cstdint>

#include "acceptor/worker/part.h"

namespace gpr::worker {

class Remaps {
public:
    explicit Remaps(Worker& worker) : worker_(worker) {}

    Task<void> move_call(RemoteProcess& process, RemoteThread& thread, Notification n);

private:
    Task<int64_t> move_one(RemoteProcess& process, Notification n);

    Worker& worker_;
};

}  // namespace gpr::worker
