#include "monitor/tracee/sealed_memory.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/uapi/mman.h"
#include "monitor/tracee/reserved_range.h"
#include "syscall/table.h"

namespace gpr {

namespace {

bool is_sealed(const AddressSpace& space, uint64_t begin, uint64_t size) {
    uint64_t whole = (size + page_size - 1) & page_mask;
    // The kernel reports other errors for these.
    if (begin % page_size != 0 || whole < size || whole > address_limit - begin) return false;
    bool any = false;
    space.overlapping({{begin}, {begin + whole}}, [&](const Mapping& m) { any |= m.sealed; });
    return any;
}

bool discards(uint64_t advice) {
    switch (advice) {
        case MADV_FREE:
        case MADV_DONTNEED:
        case MADV_REMOVE:
        case MADV_DONTFORK:
        case MADV_WIPEONFORK:
        case MADV_DONTNEED_LOCKED:
        case MADV_GUARD_INSTALL: return true;
        default: return false;
    }
}

// Whether the content of the range must be kept: memory that the program may write may also be
// discarded.
bool keeps_content(const AddressSpace& space, const uint64_t* args) {
    uint64_t whole = (args[1] + page_size - 1) & page_mask;
    bool sound = args[0] % page_size == 0 && whole >= args[1] && whole <= address_limit - args[0];
    bool any = false;
    if (!sound || !discards(args[2])) return false;
    space.overlapping({{args[0]}, {args[0] + whole}}, [&](const Mapping& m) {
        any |= m.sealed && !m.shared && !(m.prot & PROT_WRITE);
    });
    return any;
}

bool moves_sealed(const AddressSpace& space, const uint64_t* args) {
    constexpr uint64_t known = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
    bool fixed = args[3] & MREMAP_FIXED;
    if ((args[3] & ~known) || args[2] == 0 || (fixed && !(args[3] & MREMAP_MAYMOVE))) return false;
    return is_sealed(space, args[0], args[1]) || (fixed && is_sealed(space, args[4], args[2]));
}

}  // namespace

std::optional<int64_t> answer_about_sealed(const AddressSpace& space, uint64_t number,
                                           const uint64_t* args, uint64_t break_end) {
    bool refused = false;
    switch (memory_call_of(number)) {
        case MemoryCall::map:
            refused = (args[3] & MAP_FIXED) && is_sealed(space, args[0], args[1]);
            break;
        case MemoryCall::unmap:
        case MemoryCall::protect:
        case MemoryCall::remap_file: refused = is_sealed(space, args[0], args[1]); break;
        case MemoryCall::move: refused = moves_sealed(space, args); break;
        case MemoryCall::advise: refused = keeps_content(space, args); break;
        case MemoryCall::set_break: {  // brk fails by changing nothing
            uint64_t end = (args[0] + page_size - 1) & page_mask;
            bool shrinks = break_end != 0 && end < break_end;
            if (!shrinks || !is_sealed(space, end, break_end - end)) return std::nullopt;
            return static_cast<int64_t>(break_end);
        }
        default: break;
    }
    return refused ? std::optional<int64_t>(-EPERM) : std::nullopt;
}

Sealing sealing_of(const AddressSpace& space, const uint64_t* args) {
    // A kernel without mseal answers ENOSYS to every call; one with it refuses unknown flags
    // otherwise.
    bool known = syscall(number_mseal, 0, 0, ~0UL) != 0 && errno != ENOSYS;
    if (!known) return {{}, -ENOSYS};
    uint64_t begin = args[0], size = (args[1] + page_size - 1) & page_mask;
    if (args[2] != 0 || begin % page_size != 0 || size < args[1] || begin + size < begin) {
        return {{}, -EINVAL};
    }
    if (size == 0) return {};
    if (size > address_limit || begin > address_limit - size) return {{}, -ENOMEM};
    Range range{{begin}, {begin + size}};
    if (space.first_gap(range) < range.end) return {{}, -ENOMEM};
    return {range, 0};
}

void mark_sealed(AddressSpace& space, Range range) {
    space.for_each(range, [](Mapping& m) { m.sealed = true; });
}

}  // namespace gpr
