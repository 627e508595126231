// Dropping root's privileges.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace gpr {

// Irrevocably reduces the effective, permitted and bounding sets to `kept`, a mask of 1 << CAP_*,
// and empties the inheritable and ambient sets and the supplementary groups.
Result<> keep_only_capabilities(uint64_t kept);

// Makes permitted capabilities effective again, after a change of the user.
Result<> raise_permitted_capabilities();

// From now on this process and its descendants can connect only to abstract unix sockets of their
// own, in any network namespace, and cannot look into other processes. ENOSYS before Linux 6.12, or
// without Landlock.
Result<> leave_abstract_sockets();
// 0 if that is possible, else the errno that says why not.
int probe_leaving_abstract_sockets();

[[nodiscard]] bool has_capability(unsigned capability);

}  // namespace gpr
