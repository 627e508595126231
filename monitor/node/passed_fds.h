// Descriptors that a message takes along: SCM_RIGHTS, unix(7).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace gpr {

// control: of the sender, as at msg_control.
std::vector<int> passed_fds(std::span<const std::byte> control);

}  // namespace gpr
