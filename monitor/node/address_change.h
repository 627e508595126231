// Changes of an address space as one node reports them to another, which applies them in the order
// in which they were sent: address_changes.h.
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
    uint64_t object_pages = 0;  // size of the object, for shared memory
    std::string path;           // of a file on the sending host
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
    ObjectId kept = 0;  // object that the old place shows after the move, 0 if none
    NodeId kept_birth = directory_node;
};
struct Guarded {
    Range range;
    bool install = false;
};
struct Sealed {
    Range range;
};
// Private memory of a file that is now also a shared object: Mapping::follows.
struct Following {
    Range range;
};
// Whether the program provides the missing pages of the range.
struct ProgramFills {
    Range range;
    bool on = false;
};
// The program has provided pages: threads that wait for them try again.
struct Filled {
    Range range;
};
// The break has grown, by a call that an acceptor has answered: acceptor/worker/breaks.h.
struct BreakMoved {
    uint64_t end = 0;
    ObjectId object = 0;  // of the new pages
};
using AddressChange = std::variant<Mapped, Unmapped, Protected, Discarded, Moved, MemoryLock,
                                   Guarded, Sealed, Following, ProgramFills, Filled, BreakMoved>;

// Only home reports these.
[[nodiscard]] inline bool is_of_home_only(const AddressChange& change) {
    return std::holds_alternative<Guarded>(change) || std::holds_alternative<Sealed>(change) ||
           std::holds_alternative<Following>(change) ||
           std::holds_alternative<ProgramFills>(change) || std::holds_alternative<Filled>(change);
}

// reader: the receiving node.
void tell_change(Link& link, NodeId reader, pid_t pid, const AddressChange& change);
// nullopt for messages about marks or shared memory.
[[nodiscard]] std::optional<AddressChange> change_from_wire(wire::MappingChange::Reader change);

// See monitor/node/change_window.h.
void tell_mark(Link& link, pid_t pid, uint32_t number);
void tell_applied(Link& link, pid_t pid, uint32_t number);

// About shared memory, which belongs to no single process.
void tell_resized(Link& link, ObjectId object, uint64_t pages);
void tell_forgotten(Link& link, ObjectId object);
void tell_used_at_home(Link& link, ObjectId object);

}  // namespace gpr
