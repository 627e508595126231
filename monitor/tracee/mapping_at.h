// Lines of /proc/PID/maps, without reading all of them: a process may have tens of thousands.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "monitor/tracee/remote_memory_raw.h"

namespace gpr {

// The line of the mapping that contains this address; ENOENT if there is none.
Result<MapsEntry> mapping_at(pid_t pid, Address at);
// The lines of all mappings that overlap the range.
Result<std::vector<MapsEntry>> mappings_in(pid_t pid, Range range);

}  // namespace gpr
