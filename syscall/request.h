// Multiplexed calls: the shape of the argument of a known ioctl, fcntl or prctl.
#pragma once

#include <cstdint>
#include <span>

#include "syscall/shape.h"

namespace gpr {

struct Request {
    uint32_t code;
    const char* name;
    Argument argument;
};

std::span<const Request> ioctl_requests();
std::span<const Request> fcntl_requests();
std::span<const Request> prctl_requests();

// For an unknown ioctl `raw`; for an unknown fcntl or prctl a scalar. Never a multiplexed kind.
Argument ioctl_argument(uint32_t code);
Argument fcntl_argument(uint32_t code);
Argument prctl_argument(uint32_t code);

}  // namespace gpr
