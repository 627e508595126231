// Which system calls the acceptor makes: the sock and sys rules of a session, on any node.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/remote_call.h"

namespace gpr {

struct SplitRule;

// The calls that the rules give to acceptor `node`, or with node 0 to any acceptor. A `sock` rule
// covers two calls.
std::vector<RemoteCall> remote_calls_of(const std::vector<SplitRule>& rules, unsigned node = 0);
// For each of those calls, the index of its rule in the list.
std::vector<size_t> rules_of_calls(const std::vector<SplitRule>& rules, unsigned node = 0);

// The index of the first entry that covers this call.
std::optional<size_t> find_remote_call(std::span<const RemoteCall> calls, uint32_t number,
                                       uint64_t first_argument);

}  // namespace gpr
