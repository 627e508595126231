// Processes in a pid or time namespace of their own. They stay at home, where the kernel's ids and
// clocks are theirs: at the acceptor, getpid and the vdso's clocks would be answered without our
// seeing them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "monitor/home/part.h"
#include "monitor/node/own_namespaces.h"

namespace gpr {
struct ThreadContext;
}  // namespace gpr

namespace gpr::home {

class Namespaces {
public:
    explicit Namespaces(Home& home) : home_(home) {}

    // root: the session's first process.
    void begin(pid_t root);
    [[nodiscard]] bool stays_home(pid_t pid) const;
    [[nodiscard]] bool child_stays_home(pid_t tid, uint64_t clone_flags) const;
    // flags: of clone3 or unshare.
    static bool changes_children(uint64_t flags);
    Task<void> begin_at_home(HomeThread& thread, std::optional<ThreadContext> context);

private:
    Home& home_;
    OwnNamespaces namespaces_;
};

}  // namespace gpr::home
