// New anonymous private memory of the program.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/address.h"
#include "monitor/paging/fragment.h"
#include "monitor/tracee/stub_thread.h"

namespace gpr {

inline constexpr uint64_t anonymous_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// Replaces what is there. Returns the kernel's result.
inline Task<int64_t> map_anonymous(StubThread& caller, Range range, int prot) {
    return caller.call(SYS_mmap, range.begin.value, range.size(), static_cast<uint64_t>(prot),
                       anonymous_flags | MAP_FIXED, ~0UL, 0);
}

// The call that does the same.
inline Call anonymous_mapping(Range range, int prot) {
    return {SYS_mmap,
            {range.begin.value, range.size(), static_cast<uint64_t>(prot),
             anonymous_flags | MAP_FIXED, ~0UL, 0},
            0};
}

// Replaces a mapping of a file, and registers the memory, which has no pages. what: for the error.
Task<Result<void>> replace_by_anonymous(Fragment& fragment, Mapping& m, const char* what);

}  // namespace gpr
