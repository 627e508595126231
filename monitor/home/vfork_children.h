// Vfork children: children that share their parent's memory until they exec or end, made by vfork
// or by clone with CLONE_VM. They run at home; changes that they make to the address space are made
// on every node.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "base/address.h"
#include "monitor/home/part.h"

namespace gpr {
struct HeldUp;
}  // namespace gpr

namespace gpr::home {

class VforkChildren {
public:
    explicit VforkChildren(Home& home) : home_(home) {}

    [[nodiscard]] HomeProcess* owner_of_memory(const HomeProcess& child) const;
    static bool changes_memory(const Notification& n);
    void begin_sharing(HomeProcess& process);
    Task<std::shared_ptr<HeldUp>> hold_up(HomeProcess& process, bool is_vfork);
    Task<void> memory_call(pid_t child, Notification n);
    void on_end(HomeThread& thread);

private:
    Task<std::optional<int64_t>> call_of_vfork_child(HomeProcess& owner, pid_t child,
                                                     Notification n);
    Task<void> clear_tid(pid_t owner, Address at, pid_t tid);

    Home& home_;
};

}  // namespace gpr::home
