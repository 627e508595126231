#include "monitor/tracee/rseq_area.h"

#include <cerrno>

namespace gpr {

namespace {
constexpr uint32_t least_size = 32;  // of the first ABI version, and its alignment
}  // namespace

int64_t register_rseq(RseqArea& area, const uint64_t* args) {
    const auto size = static_cast<uint32_t>(args[1]), signature = static_cast<uint32_t>(args[3]);
    const bool same = area.size == size && area.address == args[0];
    if (args[2] & rseq_unregister) {
        if (args[2] != rseq_unregister || area.size == 0 || !same) return -EINVAL;
        if (area.signature != signature) return -EPERM;
        area = {};
        return 0;
    }
    if (args[2] != 0) return -EINVAL;
    if (area.size != 0) {
        if (!same) return -EINVAL;
        return area.signature == signature ? -EBUSY : -EPERM;
    }
    if (size < least_size || args[0] % least_size != 0 || args[0] == 0) return -EINVAL;
    area = {args[0], size, signature};
    return 0;
}

}  // namespace gpr
