#include "monitor/tracee/reserved_range.h"

#include <sys/mman.h>
#include <sys/shm.h>

#include <algorithm>
#include <cerrno>

#include "syscall/table.h"

namespace gpr {

namespace {

constexpr uint64_t largest_segment = 1ULL << 40;  // of a System V shared memory segment, to be safe
constexpr Range reserved = reserved_range;

// False for a range that is unaligned or wraps around: the kernel refuses it anyway.
bool meets(uint64_t begin, uint64_t size) {
    bool sound = begin % page_size == 0 && begin <= begin + size;
    return sound && begin < reserved.end.value && begin + size > reserved.begin.value;
}

bool lies_in(uint64_t begin, uint64_t size) {
    return meets(begin, size) && begin >= reserved.begin.value &&
           size <= reserved.end.value - begin;
}

bool is_fixed(const uint64_t* mmap) { return mmap[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE); }

}  // namespace

std::optional<int64_t> answer_about_reserved(uint64_t number, const uint64_t* args) {
    switch (memory_call_of(number)) {
        case MemoryCall::map:
            if (!is_fixed(args) || !meets(args[0], args[1])) return std::nullopt;
            return args[3] & MAP_FIXED_NOREPLACE ? -EEXIST : -ENOMEM;
        case MemoryCall::unmap:
            if (!lies_in(args[0], args[1])) return std::nullopt;
            return 0;
        case MemoryCall::protect:
        case MemoryCall::advise:
        case MemoryCall::lock:
        case MemoryCall::unlock:
            if (!meets(args[0], args[1])) return std::nullopt;
            return -ENOMEM;
        case MemoryCall::move:
            if (meets(args[0], args[1])) return -EFAULT;
            if (!(args[3] & MREMAP_FIXED) || !meets(args[4], args[2])) return std::nullopt;
            return -EINVAL;
        case MemoryCall::remap_file:
            if (!meets(args[0], args[1])) return std::nullopt;
            return -EINVAL;
        case MemoryCall::attach:  // without SHM_REMAP the kernel itself finds the address in use
            if (!meets(args[1] & page_mask, args[2] & SHM_REMAP ? largest_segment : 1)) {
                return std::nullopt;
            }
            return -EINVAL;
        default: return std::nullopt;
    }
}

std::vector<Range> beside_reserved(Range range) {
    std::vector<Range> parts;
    const Range below{range.begin, std::min(range.end, reserved.begin)};
    const Range above{std::max(range.begin, reserved.end), range.end};
    if (below.begin < below.end) parts.push_back(below);
    if (above.begin < above.end) parts.push_back(above);
    return parts;
}

uint64_t hint_beside_reserved(const uint64_t* args) {
    return !is_fixed(args) && meets(args[0], args[1]) ? 0 : args[0];
}

}  // namespace gpr
