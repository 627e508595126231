// mremap, asked for here or done at home.
#pragma once

#include <cstdint>

#include "acceptor/worker/part.h"
#include "base/address.h"
#include "mm/page_protocol.h"
#include "transport/wire.h"

namespace gpr {
class AddressSpace;
}  // namespace gpr

namespace gpr::worker {

class Remaps {
public:
    explicit Remaps(Worker& worker) : worker_(worker) {}

    Task<void> move_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> apply_move(Fragment& fragment, wire::Move::Reader move);

private:
    struct Remap {
        Range from, to;
        Range apart;        // what is new at its end, if that is of another object
        ObjectId kept = 0;  // MREMAP_DONTUNMAP: what is seen at the old place then
        NodeId kept_birth = directory_node;
        uint64_t kernel_flags = 0;

        [[nodiscard]] Range moved() const {
            return {to.begin, apart.empty() ? to.end : apart.begin};
        }
    };
    Task<int64_t> move_one(RemoteProcess& process, Notification n);
    // Where the mapping goes, or why it cannot.
    tl::expected<Remap, int> plan_move(AddressSpace& space, const Notification& n, bool in_place);
    void map_grown(RemoteProcess& process, Range range);
    Task<int64_t> move_mapping(Fragment& fragment, const Remap& move);

    Worker& worker_;
};

}  // namespace gpr::worker
