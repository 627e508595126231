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

// This process and all that it will start reach no abstract unix socket but their own from now on,
// in whichever network, and look into no other process. ENOSYS: before Linux 6.12, or no Landlock.
Result<> leave_abstract_sockets();
// 0: it can be done; else the errno that says why not.
int probe_leaving_abstract_sockets();

[[nodiscard]] bool has_capability(unsigned capability);

}  // namespace gpr
