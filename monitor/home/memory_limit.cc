#include "monitor/home/memory_limit.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

#include "monitor/home/forwarded_call.h"
#include "monitor/home/main_stack.h"
#include "monitor/paging/growth.h"
#include "monitor/tracee/process_stat.h"
#include "syscall/table.h"

namespace gpr {

namespace {

constexpr uint64_t besides_mailbox = 16ULL << 20;  // of ours: the stub and the scratch areas

// The room for the main stack is mapped, and counts as data.
uint64_t room_for_stack(const HomeProcess& process) {
    if (process.fragment) {
        const auto stack = main_stack(process.fragment->space);
        return stack ? stack->size() : 0;
    }
    const auto limit = limit_of(process.pid, RLIMIT_STACK);
    return std::min<uint64_t>(limit ? limit->rlim_cur : 0, home::MainStack::most_room);
}

// How much of the process's memory that the kernel counts is gpr's.
uint64_t margin_of(int resource, const HomeProcess& process, uint64_t mailbox_size) {
    if (resource == RLIMIT_DATA) return 2 * GPR_SCRATCH_SIZE + room_for_stack(process);
    return mailbox_size + besides_mailbox;
}

struct LimitArguments {
    int resource;
    uint64_t pid, given, before;  // addresses of struct rlimit, or 0
};

std::optional<LimitArguments> arguments_of(uint64_t number, const uint64_t* args) {
    const LimitPlaces places = details_of(number).limit;
    if (places.resource < 0) return std::nullopt;
    auto at = [&](int8_t place) { return place < 0 ? 0 : args[place]; };
    LimitArguments found{static_cast<int>(args[places.resource]), at(places.process),
                         at(places.given), at(places.before)};
    if (std::ranges::find(memory_resources, found.resource) == std::end(memory_resources)) {
        return std::nullopt;
    }
    return found;
}

bool set_limit(pid_t pid, int resource, const rlimit& limit) {
    return prlimit(pid, static_cast<__rlimit_resource>(resource), &limit, nullptr) == 0;
}

rlim_t wider(rlim_t limit, uint64_t by) {
    return limit >= RLIM_INFINITY - by ? RLIM_INFINITY : limit + by;
}

}  // namespace

Result<uint64_t> make_room_within_limits(HomeProcess& process) {
    uint64_t mailbox = Mailbox::largest;
    for (const int resource : memory_resources) {
        const auto limit = limit_of(process.pid, resource);
        if (!limit || limit->rlim_cur == RLIM_INFINITY) continue;
        if (const auto seen = process.memory_limits.find(resource);
            seen != process.memory_limits.end()) {
            const uint64_t margin =
                limit->rlim_cur - std::min(seen->second.rlim_cur, limit->rlim_cur);
            if (resource == RLIMIT_AS) mailbox = margin - std::min(besides_mailbox, margin);
            continue;
        }
        auto widen_for = [&](uint64_t mailbox_size) {
            rlimit wide{wider(limit->rlim_cur, margin_of(resource, process, mailbox_size)),
                        limit->rlim_max};
            wide.rlim_max = std::max(wide.rlim_cur, wide.rlim_max);
            return set_limit(process.pid, resource, wide);
        };
        const uint64_t part = Mailbox::part_of(limit->rlim_cur);
        // Only CAP_SYS_RESOURCE may raise the hard limit.
        bool wide = widen_for(mailbox);
        if (!wide && resource == RLIMIT_AS) {
            mailbox = std::min(mailbox, part);
            wide = widen_for(mailbox);
        }
        if (wide) {
            process.memory_limits[resource] = *limit;
            continue;
        }
        const uint64_t used = limited_pages(process.pid, resource) * page_size;
        if (wider(used, margin_of(resource, process, mailbox)) <= limit->rlim_cur) continue;
        return fail(fmt::format(
            "its limit of {} leaves no room for gpr's own part, and gpr may not raise it; set the "
            "soft limit only ({})",
            resource == RLIMIT_AS ? "address space" : "data",
            resource == RLIMIT_AS ? "ulimit -Sv" : "ulimit -Sd"));
    }
    return mailbox;
}

void restore_limits(pid_t pid, const std::map<int, rlimit>& limits) {
    for (auto [resource, limit] : limits) {
        const auto kernels = limit_of(pid, resource);
        if (!kernels) continue;
        limit.rlim_max = std::min(limit.rlim_max, kernels->rlim_max);
        limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
        (void)set_limit(pid, resource, limit);
    }
}

std::optional<pid_t> limited_by(uint64_t number, const uint64_t* args) {
    auto arguments = arguments_of(number, args);
    if (!arguments) return std::nullopt;
    return static_cast<pid_t>(arguments->pid);
}

bool must_widen(const HomeProcess& caller, uint64_t number, const uint64_t* args) {
    auto arguments = arguments_of(number, args);
    return arguments && (arguments->given != 0 || arguments->pid != 0 ||
                         caller.memory_limits.contains(arguments->resource));
}

std::optional<MemoryLimitCall> MemoryLimitCall::widen(const HomeProcess& process,
                                                      const ForwardedCall& call) {
    auto arguments = arguments_of(call.number, call.made.args);
    auto resource = static_cast<__rlimit_resource>(arguments->resource);
    const auto kernels = limit_of(process.pid, resource);
    auto seen = process.memory_limits.find(resource);
    // A child that is not split yet has its parent's limit; at rest it has the kernel's.
    const bool is_wide = process.fragment || seen != process.memory_limits.end();
    if (!is_wide || !kernels) return std::nullopt;
    MemoryLimitCall limit{process.pid, resource, *kernels, std::nullopt};
    if (seen != process.memory_limits.end()) limit.before = seen->second;
    auto bytes = call.bytes(arguments->given, sizeof(rlimit));
    if (bytes.empty()) return limit;
    const rlimit& given = limit.given.emplace(bytes.get<rlimit>().to_pass_on());
    if (given.rlim_cur > given.rlim_max) return limit;  // the kernel answers EINVAL
    const uint64_t margin =
        process.fragment ? margin_of(resource, process, process.fragment->mailbox().size())
                         : kernels->rlim_cur - std::min(seen->second.rlim_cur, kernels->rlim_cur);
    rlimit wide{wider(given.rlim_cur, margin), wider(given.rlim_max, margin)};
    // A caller that may not raise a hard limit must be able to set the one that it sees.
    if (given.rlim_max <= limit.before.rlim_max) {
        wide.rlim_max = std::min(wide.rlim_max, kernels->rlim_max);
    }
    wide.rlim_cur = std::min(wide.rlim_cur, wide.rlim_max);
    bytes.put(0, wide);
    return limit;
}

bool MemoryLimitCall::show(const ForwardedCall& call) const {
    if (call.made.result != 0) return false;
    uint64_t before_at = arguments_of(call.number, call.made.args)->before;
    auto bytes = call.bytes(before_at, sizeof(rlimit));
    if (!bytes.empty()) bytes.put(0, before);
    return given.has_value();
}

}  // namespace gpr
