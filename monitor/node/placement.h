// Mappings whose address home's kernel chooses. It does not know where acceptors place theirs
// without asking, nor that gpr's range is reserved, so what it puts there is moved elsewhere.
#pragma once

#include <optional>

#include "monitor/paging/fragment.h"

namespace gpr {

// The highest free range of this size in a process of this host.
std::optional<Address> find_place(pid_t host_pid, uint64_t size);

// To be called after an mmap, mremap or shmat that returned `result` and is not yet in the list of
// mappings. The caller must hold the `metadata` lock, so that the list has what acceptors have
// placed meanwhile.
Task<int64_t> place_elsewhere(Fragment& fragment, StubThread& caller, uint64_t number,
                              const uint64_t* args, int64_t result);

}  // namespace gpr
