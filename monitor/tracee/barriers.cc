#include "monitor/tracee/barriers.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>

namespace gpr {

namespace {
constexpr uint64_t get_registrations = 1 << 9;  // MEMBARRIER_CMD_GET_REGISTRATIONS, Linux 6.3
constexpr uint32_t all[] = {MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED,
                            MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
                            MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE,
                            MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ};
}  // namespace

Task<uint32_t> registered_barriers(StubThread& stub) {
    int64_t commands = co_await stub.call(SYS_membarrier, get_registrations, 0, 0);
    co_return commands < 0 ? 0 : static_cast<uint32_t>(commands);
}

Task<void> register_barriers(StubThread& stub, uint32_t commands) {
    for (uint32_t command : all) {
        if (commands & command) co_await stub.call(SYS_membarrier, command, 0, 0);
    }
}

}  // namespace gpr
