// How much of a range is in a process's memory here. Examined in parts, so that a range of
// gigabytes does not block the loop.
#pragma once

#include <cstdint>
#include <memory>

#include "base/task.h"
#include "monitor/paging/fragment.h"
#include "transport/loop.h"

namespace gpr::paging {

// The number of touched pages, without pages of zeros; all pages if the kernel cannot tell.
Task<uint64_t> resident_pages(Loop& loop, std::shared_ptr<Fragment> fragment, Range range);

}  // namespace gpr::paging
