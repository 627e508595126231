// What home knows of address spaces follows their changes, wherever they were made. Has the numbers
// of memory objects that begin here.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/address.h"
#include "mm/page_protocol.h"
#include "monitor/home/part.h"
#include "syscall/marshal.h"
#include "transport/wire.h"

namespace gpr {
struct Mapping;
}  // namespace gpr

namespace gpr::home {

class Layouts {
public:
    explicit Layouts(Home& home) : home_(home) {}

    ObjectId new_object(NodeId birth);
    // To all acceptors but `from`.
    void announce(HomeProcess& process, const Mapping& mapping, NodeId from = directory_node);
    Task<void> note_call(HomeProcess& process, Notification n, int64_t result, pid_t caller);
    void note_unmapped(HomeProcess& process, Range range);
    Task<void> note_protect(HomeProcess& process, Notification n);
    Task<void> apply_mapping(Frame frame, NodeId from);
    ObjectId next_object() { return next_object_++; }
    // To what mincore has told of home: pages that any acceptor has, as far as home knows.
    Task<void> add_resident_elsewhere(std::shared_ptr<Fragment> fragment, SyscallArguments args);

private:
    Task<void> note_mmap(HomeProcess& process, Notification n, uint64_t begin, pid_t caller);
    void note_move(HomeProcess& process, const Notification& n, uint64_t to);
    void map_grown(HomeProcess& process, Range range);
    void note_break(HomeProcess& process, uint64_t end);
    std::vector<Mapping> move_views(HomeProcess& process, Range from, Range to, ObjectId kept,
                                    NodeId mover);
    Task<void> map(HomeProcess& process, wire::MappingView::Reader made, NodeId from);
    Task<void> unmap(Fragment& fragment, wire::AddressRange::Reader unmapped, NodeId from);
    Task<void> protect(HomeProcess& process, wire::Protect::Reader change, NodeId from);
    Task<void> discard(Fragment& fragment, wire::AddressRange::Reader discarded, NodeId from);
    Task<void> move(HomeProcess& process, wire::Move::Reader move, NodeId from);

    Home& home_;
    ObjectId next_object_ = 1;
};

}  // namespace gpr::home
