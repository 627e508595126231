// What clone(2), clone3(2), fork(2) and vfork(2) ask for, in one form. Whether the flags are
// compatible is left to the kernel that makes the child.
#pragma once

#include <linux/sched.h>

#include <array>
#include <cstdint>

namespace gpr {

struct CloneRequest {
    uint64_t flags = 0;        // in clone3's form
    uint64_t exit_signal = 0;  // likewise
    uint64_t stack = 0;        // its top; 0: the caller's stack
    uint64_t parent_tid = 0;
    uint64_t child_tid = 0;
    uint64_t tls = 0;
    uint64_t pidfd = 0;
    uint64_t cgroup = 0;

    // Two results at one address, as clone's single argument for both would have it: EINVAL.
    [[nodiscard]] bool overlaps() const {
        return has(CLONE_PIDFD) && has(CLONE_PARENT_SETTID) && pidfd == parent_tid;
    }
    [[nodiscard]] bool has(uint64_t flag) const { return (flags & flag) != 0; }
};

// For every call but clone3.
CloneRequest clone_request(uint32_t number, const std::array<uint64_t, 6>& args);

// For clone3 called with `size` bytes: 0, or the error that it returns before it looks at the ids.
int clone3_error(const clone_args& args, uint64_t size);
CloneRequest clone_request(const clone_args& args);

}  // namespace gpr
