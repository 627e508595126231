#include "monitor/tracee/alt_stack.h"

#include <signal.h>
#include <sys/syscall.h>

#include <cstring>

namespace gpr {

Task<void> put_alt_stack(StubThread& stub, wire::Crossing::Builder crossing) {
    auto guard = co_await stub.lock();
    std::vector<Call> calls{Call{SYS_sigaltstack, {0, stub.scratch_address().value}, 0}};
    co_await stub.run_locked(calls);
    if (calls[0].result != 0) co_return;
    auto stack = stub.scratch().bytes(0, sizeof(stack_t));
    crossing.setAltStack({reinterpret_cast<const uint8_t*>(stack.data()), stack.size()});
}

Task<void> take_alt_stack(StubThread& stub, wire::Crossing::Reader crossing) {
    if (crossing.getAltStack().size() != sizeof(stack_t)) co_return;
    auto guard = co_await stub.lock();
    auto given = crossing.getAltStack();
    stub.scratch().write(0, std::as_bytes(std::span(given.begin(), given.size())));
    std::vector<Call> calls{Call{SYS_sigaltstack, {stub.scratch_address().value, 0}, 0}};
    co_await stub.run_locked(calls);
}

}  // namespace gpr
