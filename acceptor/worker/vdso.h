// vdso(7): code that the kernel maps into every process for its clocks. A program has looked up the
// addresses of its functions at home, so they must be the same at the acceptor, whose kernel may be
// a different one. Pure code; home's image comes from the peer.
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
using VdsoFunctions = std::map<std::string, VdsoFunction>;  // aliases are separate entries

// Whether both have the same functions at the same offsets. Then each kernel's image can take the
// other's place: its code fits its own data.
bool same_functions(std::span<const std::byte> a, std::span<const std::byte> b);
Result<VdsoFunctions> vdso_functions(std::span<const std::byte> image);

// A copy of `theirs` in which every function jumps to the one of the same name in `ours`, at
// address `ours_at`. Functions that ours lacks become system calls. Fails if a function can be
// replaced in neither way.
Result<std::vector<std::byte>> vdso_proxy(std::span<const std::byte> theirs,
                                          std::span<const std::byte> ours, uint64_t ours_at);

}  // namespace gpr
