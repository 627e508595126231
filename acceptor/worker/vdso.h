// The code that a kernel puts into every process for its clocks (vdso(7)). A program has asked at
// home where its functions are, so they must lie there at the acceptor too, whose kernel may be
// another one. Pure code; the initiator's image comes from the peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace gpr {

struct VdsoFunction {
    uint64_t offset = 0, size = 0;
    bool operator==(const VdsoFunction&) const = default;
};
using VdsoFunctions = std::map<std::string, VdsoFunction>;  // aliases are functions, too

// Then one can take the other's place, whatever the code is: each kernel's fits its own data.
bool same_functions(std::span<const std::byte> a, std::span<const std::byte> b);
Result<VdsoFunctions> vdso_functions(std::span<const std::byte> image);

// A copy of `theirs` in which every function goes on in the one of that name in `ours`, which lies
// at `ours_at`. What ours lacks is left to system calls. Fails if it has a function that can be
// done in neither way.
Result<std::vector<std::byte>> vdso_proxy(std::span<const std::byte> theirs,
                                          std::span<const std::byte> ours, uint64_t ours_at);

}  // namespace gpr
