// New anonymous private memory of the program.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>

#include <vector>

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

// Replaces a mapping of a file that no thread of the program uses yet, and registers the memory,
// which has no pages. what: for the error.
Task<Result<void>> replace_by_anonymous(Fragment& fragment, Mapping& m, const char* what);

// The same for a mapping that threads may be using: they notice nothing. Memory that has all pages
// takes the place of the mapping in one step of the kernel's, and is registered then. prot is
// without PROT_WRITE: until the registration nobody may write there.
// docs/decisions/0093-memory-is-replaced-in-one-step.md
//
// The caller must hold the `metadata` lock, and have the range alone until he has noted that the
// memory is anonymous and registered, and has dropped the pages that are not to be there.
Task<Result<void>> replace_in_use(Fragment& fragment, Range range, int prot, const char* what);
// Of private memory, locked or not.
Task<void> drop_pages(Fragment& fragment, const std::vector<Range>& ranges);

}  // namespace gpr
