#include "monitor/node/advice.h"

#include <algorithm>
#include <cerrno>

#include "base/uapi/mman.h"

namespace gpr {

namespace {

int error_for(const Mapping& m, int advice) {
    bool anonymous = !m.shared && !m.file;
    switch (advice) {
        case MADV_FREE: return anonymous && !m.locked ? 0 : EINVAL;
        case MADV_WIPEONFORK: return anonymous ? 0 : EINVAL;
        case MADV_COLD:
        case MADV_PAGEOUT: return m.locked ? EINVAL : 0;
        case MADV_REMOVE:
            if (m.locked || anonymous) return EINVAL;
            return m.shared && m.may_write ? 0 : EACCES;
        default: return 0;
    }
}

}  // namespace

int advice_error(const AddressSpace& space, const uint64_t* args) {
    uint64_t size = (args[1] + page_size - 1) & page_mask;
    Range range{{args[0]}, {args[0] + size}};
    auto advice = static_cast<int>(args[2]);
    if (args[0] % page_size != 0 || size < args[1] || range.end < range.begin) return EINVAL;
    int error = 0;
    space.overlapping(range, [&](const Mapping& m) {
        if (error == 0) error = error_for(m, advice);
    });
    bool gap = advice == MADV_FREE && space.first_gap(range) < range.end;
    return error == 0 && gap ? ENOMEM : error;
}

bool is_populating(uint64_t advice) {
    return advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE;
}

bool drops_content(uint64_t advice) {
    return advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE ||
           advice == MADV_DONTNEED_LOCKED;
}

int sync_error(const AddressSpace& space, const uint64_t* args) {
    constexpr uint64_t known = MS_ASYNC | MS_SYNC | MS_INVALIDATE;
    uint64_t size = (args[1] + page_size - 1) & page_mask, flags = args[2];
    Range range{{args[0]}, {args[0] + size}};
    bool sound = args[0] % page_size == 0 && size >= args[1] && range.begin < range.end &&
                 !(flags & ~known) && (flags & (MS_ASYNC | MS_SYNC)) != (MS_ASYNC | MS_SYNC);
    if (!sound || !(flags & MS_INVALIDATE)) return 0;
    return before_locked(space, range) == range ? 0 : EBUSY;
}

Range before_locked(const AddressSpace& space, Range range) {
    Address end = range.end;
    space.overlapping(range, [&](const Mapping& m) {
        if (m.locked) end = std::min(end, std::max(m.range.begin, range.begin));
    });
    return {range.begin, end};
}

}  // namespace gpr
