// DebugTraps of a process's threads on the wire: a mirrored call of ptrace, with these numbers as
// its arguments.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/address.h"
#include "monitor/tracee/debug_traps.h"

namespace gpr {

// returns: where single threads stop once more, by tid, with a register that is free.
inline std::vector<uint64_t> to_numbers(const DebugTraps& traps,
                                        const std::map<pid_t, Address>& returns) {
    std::vector<uint64_t> numbers(traps.addresses.begin(), traps.addresses.end());
    numbers.push_back(traps.control);
    numbers.push_back(traps.calls);
    for (const auto& [tid, at] : returns) {
        numbers.push_back(static_cast<uint64_t>(tid));
        numbers.push_back(at.value);
    }
    return numbers;
}

struct TrapsOfThreads {
    DebugTraps traps;
    std::map<pid_t, Address> returns;
};

// nullopt: they are not such numbers.
inline std::optional<TrapsOfThreads> traps_from(std::span<const uint64_t> numbers) {
    TrapsOfThreads its;
    const size_t fixed = its.traps.addresses.size() + 2;
    if (numbers.size() < fixed || (numbers.size() - fixed) % 2 != 0) return std::nullopt;
    std::copy_n(numbers.begin(), its.traps.addresses.size(), its.traps.addresses.begin());
    its.traps.control = numbers[fixed - 2];
    its.traps.calls = numbers[fixed - 1] != 0;
    for (size_t i = fixed; i < numbers.size(); i += 2) {
        its.returns[static_cast<pid_t>(numbers[i])] = {numbers[i + 1]};
    }
    return its;
}

}  // namespace gpr
