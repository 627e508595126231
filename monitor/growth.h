// MAP_GROWSDOWN: a mapping grows when it is touched below its start. No kernel knows that of ours,
// because both nodes must have it; what it makes of such a touch is a SIGSEGV.
#pragma once

#include <signal.h>

#include <optional>

#include "mm/address_space.h"

namespace gpr {

// What is to be mapped for a thread that got this signal, without an object; nothing if the signal
// is the program's.
std::optional<Mapping> growth_for(AddressSpace& space, const siginfo_t& info);

// What the kernel says of a page beyond the end of a file.
siginfo_t end_of_file_info(const siginfo_t& fault);

}  // namespace gpr
