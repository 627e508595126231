// Children of forks. They run at home as ordinary processes at first, and are split later.
// docs/decisions/0008-young-children-stay-home.md
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <optional>

#include "monitor/home/part.h"

namespace gpr {
struct ThreadContext;
}  // namespace gpr

namespace gpr::home {

class Children {
public:
    explicit Children(Home& home) : home_(home) {}

    [[nodiscard]] bool must_split_for(const HomeProcess& process, const Notification& n) const;
    // For a child that is not split yet: the answer to a call about addresses where gpr's part will
    // be, and where filters would let the program's own code make any call.
    static std::optional<int64_t> answer_about_gprs_part(const HomeProcess& process,
                                                         const Notification& n);
    void split_children_now();
    Task<void> start_newborn(HomeThread& thread, std::optional<ThreadContext> context, bool split);
    void split_later(pid_t pid);
    // Unless it has unmapped its vdso, whose instructions make our first calls in it.
    Task<void> split_if_it_can(pid_t pid);
    Task<void> split_child(pid_t pid);
    Task<void> split_stopped(HomeProcess& process, HomeThread& thread,
                             const ThreadContext& context);

private:
    Task<Result<void>> begin_split(HomeProcess& process, HomeThread& thread,
                                   const ThreadContext& context);
    void keep(HomeProcess& process, HomeThread& thread, const user_regs_struct& regs,
              uint64_t signal_mask);

    Home& home_;
};

}  // namespace gpr::home
