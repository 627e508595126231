#include "monitor/paging/neutral_code.h"

namespace gpr {

bool in_neutral_code(Fragment& fragment, const FaultOrigin& origin, CodeClass kept) {
    if (origin.kind != FaultOrigin::Kind::program) return false;
    const Mapping* code = fragment.space.find({origin.instruction});
    if (!code || code->code != CodeClass::neutral) return false;
    uint64_t return_address = 0;
    if (fragment.memory().read({origin.stack}, &return_address, sizeof return_address) !=
        sizeof return_address) {
        return true;
    }
    const Mapping* caller = fragment.space.find({return_address});
    return !caller || caller->code != kept;
}

}  // namespace gpr
