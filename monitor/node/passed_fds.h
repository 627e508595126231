// Descriptors passed in a message: SCM_RIGHTS, unix(7).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace gpr {

// control: the sender's data at msg_control.
std::vector<int> passed_fds(std::span<const std::byte> control);

}  // namespace gpr
