// System calls of program code that runs at home, as far as the acceptor must know of them.
#pragma once

#include <cstdint>

#include "monitor/home/part.h"

namespace gpr {
struct SharedUse;
}  // namespace gpr

namespace gpr::home {

class LocalCalls {
public:
    explicit LocalCalls(Home& home) : home_(home) {}

    void local_call(HomeProcess& process, HomeThread& thread, const Notification& n);
    void note_modes(HomeThread& thread, uint64_t number, const uint64_t* args, bool told);

private:
    Task<void> use_call(HomeThread& thread, Notification n, SharedUse use);
    void tell_membarrier(HomeProcess& process, const Notification& n);

    Home& home_;
};

}  // namespace gpr::home
