// Threads cross: out of the program at home into the acceptor, and back.
#pragma once

#include "monitor/home/part.h"

namespace gpr {
struct ThreadContext;
}  // namespace gpr

namespace gpr::home {

class Crossings {
public:
    explicit Crossings(Home& home) : home_(home) {}

    Task<void> depart(HomeThread& thread, const ThreadContext& context, bool visit);
    // visit: for memory that only the acceptor may use.
    Task<void> cross(HomeProcess& process, HomeThread& thread, const ThreadContext& context,
                     bool visit = false);
    // visit: because the call can be made there only, whatever code makes it.
    Task<void> leave_at_call(HomeProcess& process, HomeThread& thread, bool visit);
    Task<void> arrive(Frame frame);

private:
    Home& home_;
};

}  // namespace gpr::home
