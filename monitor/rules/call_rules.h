// Which system calls are the acceptor's: the sock and sys rules of a session, on any node.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/remote_call.h"

namespace gpr {

struct SplitRule;

// Those that the rules give to an acceptor, or to any of them (node 0); a `sock` rule gives two.
std::vector<RemoteCall> remote_calls_of(const std::vector<SplitRule>& rules, unsigned node = 0);
// For each of those calls, the place of its rule in the list.
std::vector<size_t> rules_of_calls(const std::vector<SplitRule>& rules, unsigned node = 0);

// The first of them that is this very call.
std::optional<size_t> find_remote_call(std::span<const RemoteCall> calls, uint32_t number,
                                       uint64_t first_argument);

}  // namespace gpr
