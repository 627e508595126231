// A thread of a program that runs at the acceptor as a whole comes home for memory that only home
// may use. It runs here for a moment, and makes no system calls: those are the acceptor's business.
#pragma once

#include <signal.h>

#include "monitor/home/part.h"

struct user_regs_struct;

namespace gpr {
struct ThreadContext;
}  // namespace gpr

namespace gpr::home {

class Visits {
public:
    explicit Visits(Home& home) : home_(home) {}

    Task<void> visit(HomeThread& thread, ThreadContext context);

private:
    bool is_call_for_others(Fragment& fragment, const user_regs_struct& regs) const;
    bool is_beyond_end(Fragment& fragment, const siginfo_t& info);
    Task<bool> stand_still(HomeThread& thread);

    Home& home_;
};

}  // namespace gpr::home
