// IFUNC: an exported function whose code is found when the program is linked, by a resolver that
// the library has for it. The resolver runs at home, with a breakpoint at its first instruction;
// what it returns is the function that the rule means.
#pragma once

#include "base/address.h"
#include "monitor/home/part.h"

namespace gpr {
struct ThreadContext;
}  // namespace gpr

namespace gpr::home {

struct Breakpoint;

class Resolvers {
public:
    explicit Resolvers(Home& home) : home_(home) {}

    Task<void> run_resolver(HomeThread& thread, ThreadContext context, Breakpoint met);

private:
    Task<bool> step_to_return(HomeThread& thread, ThreadContext& context);
    void choose_resolved(HomeProcess& process, const Breakpoint& resolver, Address resolved);

    Home& home_;
};

}  // namespace gpr::home
