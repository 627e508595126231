#include "monitor/tracee/kernel_actions.h"

#include <sys/syscall.h>

#include <span>

namespace gpr {

Task<std::vector<SignalAction>> kernel_actions(StubThread& stub, Mailbox& mailbox) {
    std::array<std::array<uint64_t, 4>, 64> kernel{};
    std::vector<Call> calls;
    for (uint64_t signal = 1; signal <= kernel.size(); signal++) {
        uint64_t at = Mailbox::bounce_address(0).value + (signal - 1) * sizeof kernel[0];
        calls.push_back(Call{SYS_rt_sigaction, {signal, 0, at, sizeof(uint64_t)}, 0});
    }
    co_await stub.run(calls);
    mailbox.bounce(0).read(0, std::as_writable_bytes(std::span(kernel)));
    std::vector<SignalAction> actions;
    for (int signal = 0; const auto& action : kernel) {
        signal++;
        if (action != std::array<uint64_t, 4>{}) actions.push_back({signal, action});
    }
    co_return actions;
}

Task<int64_t> set_kernel_action(StubThread& stub, SignalAction action) {
    stub.scratch().put(0, action.kernel);
    const auto number = static_cast<uint64_t>(action.signal);
    const uint64_t at = stub.scratch_address().value;
    std::vector<Call> calls{Call{SYS_rt_sigaction, {number, at, 0, sizeof(uint64_t)}, 0}};
    co_await stub.run_locked(calls);
    co_return calls[0].result;
}

}  // namespace gpr
