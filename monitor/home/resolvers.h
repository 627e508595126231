// IFUNC: an exported function whose address is computed by a resolver in the library when the
// program is linked. The resolver runs at home and has a breakpoint at its first instruction; the
// function whose address it returns is the one that the rule means.
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
    enum class Stepped { returned, did_not_return, handed_on };
    Task<Stepped> step_to_return(HomeThread& thread, ThreadContext& context);
    void choose_resolved(HomeProcess& process, const Breakpoint& resolver, Address resolved);

    Home& home_;
};

}  // namespace gpr::home
