// Contexts of Linux AIO. io_setup maps a ring at the address that identifies the context. The
// kernel writes completions there, and libaio and others read them without a call.
#pragma once

#include <cstdint>

#include "base/address.h"
#include "monitor/home/part.h"

namespace gpr {
struct ForwardedCall;
}  // namespace gpr

namespace gpr::home {

class Aio {
public:
    explicit Aio(Home& home) : home_(home) {}

    Task<void> note_aio_in_bounce(HomeProcess& process, const ForwardedCall& call);
    Task<void> aio_call_here(HomeThread& thread, Notification n);

private:
    Task<void> note_aio_call(HomeProcess& process, uint32_t number, Address context);

    Home& home_;
};

}  // namespace gpr::home
