// System calls of threads at an acceptor that concern what lives at home: their shadows make them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "mm/page_protocol.h"
#include "monitor/home/part.h"
#include "monitor/home/promises.h"
#include "syscall/marshal.h"

namespace gpr {
struct ForwardedCall;
}  // namespace gpr

namespace gpr::home {

class Calls {
public:
    explicit Calls(Home& home) : home_(home) {}

    Task<void> serve_call(Frame frame, NodeId from);
    Task<void> interrupt_call(Frame frame);
    void reply(HomeThread& thread, int64_t result, std::span<const std::byte> out = {},
               const Promises& promises = {});

    void send_elsewhere(HomeThread& thread);

private:
    Task<void> make_memory_call(HomeProcess& process, HomeThread& thread, Frame frame,
                                SyscallArguments args);
    Task<void> make_call(HomeProcess& process, HomeThread& thread, Frame frame,
                         SyscallArguments args);
    Task<bool> answer_tracer(HomeThread& thread, uint32_t number, SyscallArguments args);
    Task<void> run_call(HomeProcess& process, HomeThread& thread, Frame frame);
    Task<void> prepare_call(HomeProcess& process, ForwardedCall& call);
    void place_call(HomeProcess& process, ForwardedCall& call);
    Task<void> make_forwarded(HomeProcess& process, HomeThread& thread, ForwardedCall& call);
    Task<void> note_made(HomeProcess& process, HomeThread& thread, ForwardedCall& call);

    Home& home_;
};

}  // namespace gpr::home
