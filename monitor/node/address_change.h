// Changes of an address space, as one node tells them to the other. Who is told applies them in
// the order in which they were sent: address_changes.h.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <variant>

#include "mm/address_space.h"
#include "monitor/node/memory_lock.h"
#include "transport/link.h"

namespace gpr {

struct Mapped {
    Mapping mapping;
    uint64_t object_pages = 0;  // of shared memory, what the object has
    std::string path;           // of a file of the sender's host
};
struct Unmapped {
    Range range;
};
struct Protected {
    Range range;
    int prot = 0;
};
struct Discarded {
    Range range;
};
struct Moved {
    Range from, to;
    ObjectId kept = 0;  // the object that is seen at the old place then, 0 if nothing is
    NodeId kept_birth = directory_node;
};
struct Guarded {
    Range range;
    bool install = false;
};
struct Sealed {
    Range range;
};
// Private memory of a file of which there is shared memory now: Mapping::follows.
struct Following {
    Range range;
};
// What is missing there is the program's to provide, or not any more.
struct ProgramFills {
    Range range;
    bool on = false;
};
// Who waits for what the program provides looks again.
struct Filled {
    Range range;
};
using AddressChange = std::variant<Mapped, Unmapped, Protected, Discarded, Moved, MemoryLock,
                                   Guarded, Sealed, Following, ProgramFills, Filled>;

// Acceptors do not tell of these.
[[nodiscard]] inline bool is_of_home_only(const AddressChange& change) {
    return std::holds_alternative<Guarded>(change) || std::holds_alternative<Sealed>(change) ||
           std::holds_alternative<Following>(change) ||
           std::holds_alternative<ProgramFills>(change) || std::holds_alternative<Filled>(change);
}

// reader: the node at the other end.
void tell_change(Link& link, NodeId reader, pid_t pid, const AddressChange& change);
// Nothing: it is none of those, but about a mark or about shared memory.
[[nodiscard]] std::optional<AddressChange> change_from_wire(wire::MappingChange::Reader change);

// See monitor/node/change_window.h.
void tell_mark(Link& link, pid_t pid, uint32_t number);
void tell_applied(Link& link, pid_t pid, uint32_t number);

// Shared memory, which is not one process's.
void tell_resized(Link& link, ObjectId object, uint64_t pages);
void tell_forgotten(Link& link, ObjectId object);
void tell_used_at_home(Link& link, ObjectId object);

}  // namespace gpr
