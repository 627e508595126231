#include "monitor/node/protection.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

namespace gpr {

Protection protection_of(const AddressSpace& space, Range range, uint64_t prot) {
    Protection done{{range.begin, range.begin}, 0};
    space.overlapping(range, [&](const Mapping& m) {
        if (done.error != 0) return;
        if (m.range.begin > done.range.end) {
            done.error = ENOMEM;
        } else if (m.shared && !m.may_write && (prot & PROT_WRITE)) {
            done.error = EACCES;
        } else {
            done.range.end = std::min(m.range.end, range.end);
        }
    });
    if (done.error == 0 && done.range.end < range.end) done.error = ENOMEM;
    return done;
}

}  // namespace gpr
