#include "monitor/tracee/tile_permission.h"

#include <asm/prctl.h>
#include <sys/syscall.h>

#include "monitor/tracee/extended_state.h"

namespace gpr {

Task<bool> may_use_tiles(StubThread& stub) {
    if (!ExtendedStateLayout::of_this_processor().has_tiles()) co_return false;
    auto guard = co_await stub.lock();
    uint64_t at = stub.scratch_address().value;
    std::vector<Call> calls{Call{SYS_arch_prctl, {ARCH_GET_XCOMP_PERM, at}, 0}};
    co_await stub.run_locked(calls);
    uint64_t permitted = 0;
    permitted = stub.scratch().get<uint64_t>(0).to_pass_on();
    co_return calls[0].result == 0 && (permitted & tile_data) != 0;
}

Task<void> ask_for_tiles(StubThread& stub) {
    co_await stub.call(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, tile_data_number);
}

}  // namespace gpr
