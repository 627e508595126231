#include "monitor/memory_limit.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

#include "monitor/forwarded_call.h"

namespace gpr {

namespace {

// The stub, and where pages are moved through.
constexpr uint64_t besides_mailbox = 16ULL << 20;

struct LimitArguments {
    uint64_t pid, given, before;  // addresses of struct rlimit, or 0
};

std::optional<LimitArguments> arguments_of(uint64_t number, const uint64_t* args) {
    switch (number) {
        case SYS_setrlimit:
            if (args[0] == RLIMIT_AS) return LimitArguments{0, args[1], 0};
            return std::nullopt;
        case SYS_getrlimit:
            if (args[0] == RLIMIT_AS) return LimitArguments{0, 0, args[1]};
            return std::nullopt;
        case SYS_prlimit64:
            if (args[1] == RLIMIT_AS) return LimitArguments{args[0], args[2], args[3]};
            return std::nullopt;
        default: return std::nullopt;
    }
}

rlim_t wider(rlim_t limit, uint64_t by) {
    return limit >= RLIM_INFINITY - by ? RLIM_INFINITY : limit + by;
}

}  // namespace

std::optional<pid_t> limited_by(uint64_t number, const uint64_t* args) {
    auto arguments = arguments_of(number, args);
    if (!arguments) return std::nullopt;
    return static_cast<pid_t>(arguments->pid);
}

bool must_widen(const HomeProcess& caller, uint64_t number, const uint64_t* args) {
    auto arguments = arguments_of(number, args);
    return arguments && (arguments->given != 0 || arguments->pid != 0 || caller.memory_limit);
}

std::optional<MemoryLimitCall> MemoryLimitCall::widen(const HomeProcess& process,
                                                      const ForwardedCall& call) {
    rlimit kernels{};
    bool known = process.fragment && prlimit(process.pid, RLIMIT_AS, nullptr, &kernels) == 0;
    if (!known) return std::nullopt;
    MemoryLimitCall limit{process.pid, process.memory_limit.value_or(kernels), std::nullopt};
    uint64_t given_at = arguments_of(call.number, call.made.args)->given;
    auto bytes = call.bytes(given_at, sizeof(rlimit));
    if (bytes.empty()) return limit;
    rlimit& given = limit.given.emplace();
    std::memcpy(&given, bytes.data(), sizeof given);
    if (given.rlim_cur > given.rlim_max) return limit;  // EINVAL
    uint64_t margin = process.fragment->mailbox().size() + besides_mailbox;
    rlimit wide{wider(given.rlim_cur, margin), wider(given.rlim_max, margin)};
    // The kernel must not refuse what takes nothing back, from those who may not raise a limit.
    if (given.rlim_max <= limit.before.rlim_max) {
        wide.rlim_max = std::min(wide.rlim_max, kernels.rlim_max);
    }
    wide.rlim_cur = std::min(wide.rlim_cur, wide.rlim_max);
    std::memcpy(bytes.data(), &wide, sizeof wide);
    return limit;
}

bool MemoryLimitCall::show(const ForwardedCall& call) const {
    if (call.made.result != 0) return false;
    uint64_t before_at = arguments_of(call.number, call.made.args)->before;
    auto bytes = call.bytes(before_at, sizeof(rlimit));
    if (!bytes.empty()) std::memcpy(bytes.data(), &before, bytes.size());
    return given.has_value();
}

}  // namespace gpr
