#include "monitor/home/aio.h"

#include <sys/syscall.h>

#include <cstring>

#include "monitor/home/forwarded_call.h"
#include "monitor/home/home.h"
#include "monitor/home/layouts.h"
#include "monitor/home/shared_memory.h"
#include "monitor/home/taken_calls.h"

namespace gpr::home {

// io_setup or io_destroy has succeeded.
Task<void> Aio::note_aio_call(HomeProcess& process, uint32_t number, Address context) {
    auto guard = co_await home_.metadata.lock();
    if (!process.fragment) co_return;
    if (number == SYS_io_setup) {
        co_await home_.shared_memory.note_attached(process, context);
    } else if (const Mapping* ring = process.fragment->space.find(context)) {
        const Range range = ring->range;
        co_await home_.layouts.changes.unmap(process.fragment, range, directory_node);
    }
}

Task<void> Aio::note_aio_in_bounce(HomeProcess& process, const ForwardedCall& call) {
    bool sets_up = call.number == SYS_io_setup;
    if (call.made.result != 0 || (!sets_up && call.number != SYS_io_destroy)) co_return;
    uint64_t context = call.given[0];
    if (sets_up) {
        auto told = call.bytes(call.made.args[1], sizeof context);
        if (!told.empty()) context = told.get<uint64_t>().to_pass_on();
    }
    co_await note_aio_call(process, call.number, {context});
}

Task<void> Aio::aio_call_here(HomeThread& thread, Notification n) {
    HomeProcess& process = *thread.process;
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto taken = co_await home_.taken_calls.take_call(thread);
    if (!taken) co_return;
    int64_t result = co_await TakenCalls::make_call(*taken, n);
    if (taken->stub->dead()) co_return;
    uint64_t context = n.args[0];
    bool known = result == 0;
    if (known && n.number == SYS_io_setup) {
        auto bytes = std::as_writable_bytes(std::span(&context, 1));
        known = co_await home_.pager.memory.read(*fragment, {n.args[1]}, bytes);
    }
    if (known) co_await note_aio_call(process, n.number, {context});
    co_await home_.taken_calls.return_from(thread, std::move(*taken), result);
}

}  // namespace gpr::home
