#include "monitor/node/crossing_context.h"

#include <sys/syscall.h>

#include <cstring>

#include "monitor/node/robust_list.h"
#include "monitor/tracee/extended_state.h"
#include "monitor/tracee/interrupted_call.h"
#include "monitor/tracee/ptrace.h"

namespace gpr {

std::vector<std::byte> put_context(wire::Crossing::Builder crossing, const ThreadContext& context,
                                   const SuspendedCall& before) {
    crossing.setRegisters({reinterpret_cast<const uint8_t*>(&context.regs), sizeof context.regs});
    crossing.setSignalMask(context.signal_mask);
    crossing.setSuspended(static_cast<uint16_t>(suspended_in(context, before).code));
    return pack_extended_state(ExtendedStateLayout::of_this_processor(), context.xstate);
}

Result<ThreadContext> context_of(const ReceivedFrame& frame) {
    auto crossing = frame.session().getCrossing();
    ThreadContext context;
    if (crossing.getRegisters().size() != sizeof context.regs) {
        return fail("a thread came without its registers");
    }
    std::memcpy(&context.regs, crossing.getRegisters().begin(), sizeof context.regs);
    GPR_TRY(context.xstate,
            unpack_extended_state(ExtendedStateLayout::of_this_processor(), frame.raw()));
    context.signal_mask = crossing.getSignalMask();
    const long code = crossing.getSuspended();
    if (trace::is_restart(-code)) context.suspended = {context.regs.rip, context.regs.rax, code};
    return context;
}

Task<void> take_robust_list(StubThread& stub, pid_t tid, uint64_t head) {
    if (head == 0 || head == robust_list_of(tid)) co_return;
    co_await stub.call(SYS_set_robust_list, head, robust_head_size);
}

}  // namespace gpr
