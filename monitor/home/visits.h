// Visits: a thread of a program that runs at an acceptor as a whole comes home for memory that only
// home may use. It runs here for a moment; its system calls are made at the acceptor, except for
// futex calls on shared words.
#pragma once

#include <signal.h>

#include <optional>

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
    bool is_call_for_others(Fragment& fragment, const user_regs_struct& arrived,
                            const user_regs_struct& regs) const;
    bool is_beyond_end(Fragment& fragment, const siginfo_t& info);
    bool is_for_acceptor(HomeThread& thread, Fragment& fragment, int number,
                         bool stands_where_it_came, std::optional<siginfo_t>& signal);
    Task<void> go_back(HomeThread& thread, std::shared_ptr<StubThread> stub,
                       std::optional<siginfo_t> signal, bool at_call);

    Home& home_;
};

}  // namespace gpr::home
