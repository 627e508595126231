// Giving up what root has.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace gpr {

// For good: effective, permitted and bounding sets become (at most) `kept`, a mask of 1 << CAP_*;
// inheritable and ambient sets and supplementary groups are emptied.
Result<> keep_only_capabilities(uint64_t kept);

// What is permitted is in force again, as it is not after the user has changed.
Result<> raise_permitted_capabilities();

[[nodiscard]] bool has_capability(unsigned capability);

}  // namespace gpr
