#include "monitor/home/taken_calls.h"

#include <cstring>

#include "monitor/home/home.h"
#include "monitor/home/stops.h"

namespace gpr::home {

// nullopt if a signal came first: then the thread calls again.
Task<std::optional<TakenCall>> TakenCalls::take_call(HomeThread& thread) {
    auto context = co_await home_.stops.capture(thread);
    if (!context) co_return std::nullopt;
    co_return TakenCall{std::move(*context), thread.stub};
}

// With the program's arguments. Returns thread_gone if the thread or its image is gone.
Task<int64_t> TakenCalls::make_call(const TakenCall& taken, const Notification& n) {
    std::vector<Call> calls{Call{n.number, {}, 0}};
    std::memcpy(calls[0].args, n.args, sizeof n.args);
    co_await taken.stub->run(calls);
    co_return calls[0].result;
}

Task<void> TakenCalls::return_from(HomeThread& thread, TakenCall taken, int64_t result) {
    if (taken.stub->dead()) co_return;
    taken.context.regs.rax = static_cast<uint64_t>(result);
    taken.context.regs.orig_rax = ~0UL;
    thread.masked = false;
    co_await home_.stops.go_on(thread, taken.context);
}

}  // namespace gpr::home
