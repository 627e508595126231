// RLIMIT_AS and RLIMIT_DATA: the kernel at home also counts what gpr has in a process, so its limit
// is that much wider than what the program set and sees.
#pragma once

#include <sys/resource.h>

#include <optional>

#include "monitor/home/process.h"

namespace gpr {

struct ForwardedCall;

inline constexpr int memory_resources[] = {RLIMIT_AS, RLIMIT_DATA};

// Whose limit the call sets or asks for, 0: the caller's. Nothing: it is another call.
std::optional<pid_t> limited_by(uint64_t number, const uint64_t* args);
// Whether the kernel would not do if it were called as it is.
bool must_widen(const HomeProcess& caller, uint64_t number, const uint64_t* args);

// Between widen() and show() home makes the call, whose structures lie in the bounce.
struct MemoryLimitCall {
    pid_t pid = 0;
    int resource = RLIMIT_AS;
    rlimit before{};  // as the program sees them
    std::optional<rlimit> given;

    // process: which limited_by() names.
    static std::optional<MemoryLimitCall> widen(const HomeProcess& process,
                                                const ForwardedCall& call);
    // True: `given` holds from now on.
    [[nodiscard]] bool show(const ForwardedCall& call) const;
};

}  // namespace gpr
