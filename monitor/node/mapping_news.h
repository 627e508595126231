// Changes of an address space, as one node tells them to the other. Who is told applies them in
// the order in which they were sent.
#pragma once

#include <sys/types.h>

#include <string>

#include "mm/address_space.h"
#include "monitor/node/memory_lock.h"
#include "transport/link.h"

namespace gpr {

// reader: the node at the other end. object_pages: of shared memory, what the object has. path: of
// a file of the sender's host.
void tell_mapped(Link& link, NodeId reader, pid_t pid, const Mapping& mapping,
                 uint64_t object_pages, const std::string& path = "");
void tell_unmapped(Link& link, pid_t pid, Range range);
void tell_protected(Link& link, pid_t pid, Range range, int prot);
void tell_discarded(Link& link, pid_t pid, Range range);
// What is missing there is the program's to provide, or not any more; or who waits looks again.
void tell_program_fills(Link& link, pid_t pid, Range range, bool on);
void tell_filled(Link& link, pid_t pid, Range range);
void tell_locked(Link& link, pid_t pid, const MemoryLock& lock);
[[nodiscard]] MemoryLock lock_from_wire(wire::Lock::Reader lock);
void tell_guarded(Link& link, pid_t pid, Range range, bool install);
void tell_follows(Link& link, pid_t pid, Range range);
void tell_sealed(Link& link, pid_t pid, Range range);
// kept: the object that is seen at the old place then, 0 if nothing is; kept_birth: its birth node.
void tell_moved(Link& link, pid_t pid, Range from, Range to, ObjectId kept, NodeId kept_birth);

// See monitor/node/change_window.h.
void tell_mark(Link& link, pid_t pid, uint32_t number);
void tell_applied(Link& link, pid_t pid, uint32_t number);

// Shared memory, which is not one process's.
void tell_resized(Link& link, ObjectId object, uint64_t pages);
void tell_forgotten(Link& link, ObjectId object);
void tell_used_at_home(Link& link, ObjectId object);

}  // namespace gpr
