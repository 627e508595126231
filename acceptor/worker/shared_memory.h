// Shared memory of the session's processes on this node: monitor/paging/shared_objects.h.
#pragma once

#include <cstdint>

#include "acceptor/worker/part.h"
#include "mm/page_protocol.h"
#include "transport/wire.h"

namespace gpr {
struct Mapping;
}  // namespace gpr

namespace gpr::worker {

class SharedMemory {
public:
    explicit SharedMemory(Worker& worker) : worker_(worker) {}

    void know_shared(ObjectId object, uint64_t pages);
    Task<int64_t> show_shared(Fragment& fragment, const Mapping& mapping);
    void give_shared(RemoteProcess& process, const Notification& n);
    void resize_shared(wire::Resize::Reader resize);

private:
    Worker& worker_;
};

}  // namespace gpr::worker
