// Mappings for which the kernel at home chooses the address. It does not know where acceptors place
// theirs without asking, nor that all of gpr's range is gpr's; what it put there is put elsewhere.
#pragma once

#include <optional>

#include "monitor/paging/fragment.h"

namespace gpr {

// The highest free range of that size for a process of this host.
std::optional<Address> find_place(pid_t host_pid, uint64_t size);

// After mmap, mremap or shmat, which gave `result` and is not yet noted in the list of mappings.
// Under the lock of the metadata: what the acceptor placed there meanwhile is in the list.
Task<int64_t> place_elsewhere(Fragment& fragment, StubThread& caller, uint64_t number,
                              const uint64_t* args, int64_t result);

}  // namespace gpr
