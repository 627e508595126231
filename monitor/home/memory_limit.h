// RLIMIT_AS and RLIMIT_DATA. Home's kernel also counts gpr's memory in a process, so the limit that
// it has is wider by that much than the one that the program has set and sees.
#pragma once

#include <sys/resource.h>

#include <map>
#include <optional>

#include "monitor/home/process.h"

namespace gpr {

struct ForwardedCall;

inline constexpr int memory_resources[] = {RLIMIT_AS, RLIMIT_DATA};

// For one that is to be split, and may have set limits before: they are widened if they can be.
// Returns how large its mailbox may be, in bytes; fails if there is no room for ours.
Result<uint64_t> make_room_within_limits(HomeProcess& process);
// For one that has nothing of ours in it any more: the limits that it has set.
void restore_limits(pid_t pid, const std::map<int, rlimit>& limits);

// The process whose limit the call sets or queries, 0 for the caller; nullopt if it is another
// call.
std::optional<pid_t> limited_by(uint64_t number, const uint64_t* args);
// Whether the call, or its result, has to be changed.
bool must_widen(const HomeProcess& caller, uint64_t number, const uint64_t* args);

// Between widen() and show(), home makes the call; its structs are in the bounce area.
struct MemoryLimitCall {
    pid_t pid = 0;
    int resource = RLIMIT_AS;
    rlimit before{};  // the limits as the program sees them
    std::optional<rlimit> given;

    // process: the one that limited_by() names.
    static std::optional<MemoryLimitCall> widen(const HomeProcess& process,
                                                const ForwardedCall& call);
    // Restores what the program sees. True if `given` is its limit from now on.
    [[nodiscard]] bool show(const ForwardedCall& call) const;
};

}  // namespace gpr
