// System calls of program code at home, as far as gpr has to take part in them.
#pragma once

#include <cstdint>

#include "mm/page_protocol.h"
#include "monitor/home/part.h"

namespace gpr {
struct SharedUse;
}  // namespace gpr

namespace gpr::home {

class LocalCalls {
public:
    explicit LocalCalls(Home& home) : home_(home) {}

    // A thread at home has called, and waits for an answer.
    void on_call(HomeProcess& process, HomeThread& thread, const Notification& n);
    // The same, where the call is about nothing of an acceptor's.
    void local_call(HomeProcess& process, HomeThread& thread, const Notification& n);
    void note_modes(HomeThread& thread, uint64_t number, const uint64_t* args, bool told);

    // A call that every kernel has to make has been made at `from`: tells the others.
    void tell_mirrored(HomeProcess& process, uint32_t number, const uint64_t* args,
                       NodeId from = directory_node);

private:
    // False if the thread shall make the call natively; true if it is taken care of.
    bool is_answered(HomeProcess& process, HomeThread& thread, const Notification& n);
    // The thread makes the call at the acceptor. Returns true.
    bool leave(HomeProcess& process, HomeThread& thread);
    bool advise_call(HomeProcess& process, HomeThread& thread, const Notification& n);
    [[nodiscard]] bool asks_of_children(const Notification& n) const;
    bool ioctl_call(HomeProcess& process, HomeThread& thread, const Notification& n);
    bool uses_shared(HomeProcess& process, HomeThread& thread, const Notification& n);
    Task<void> populate_call(HomeThread& thread, Notification n);
    Task<void> use_call(HomeThread& thread, Notification n, SharedUse use);

    Home& home_;
};

}  // namespace gpr::home
