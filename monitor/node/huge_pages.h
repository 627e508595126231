// Huge pages that a program asks for (MAP_HUGETLB, hugetlbfs, memfd_create with MFD_HUGETLB).
// Home's kernel decides whether any are available. Private ones are replaced by small pages, which
// can move; shared ones are used at home.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "monitor/tracee/stub_thread.h"

namespace gpr {

// The length that mmap maps with these arguments: rounded up to its page size. link: of the file,
// in /proc.
uint64_t mapped_size(const uint64_t* args, const std::string& link);
// Whether this host has huge pages to give, or none, so that asking for them fails.
[[nodiscard]] bool has_huge_pages();
// Whether the link leads to a file of huge pages.
[[nodiscard]] bool has_huge_pages(const std::string& link);

// After a private mmap with MAP_HUGETLB: replaces the range by small pages.
Task<int64_t> make_small(StubThread& caller, const uint64_t* args, int64_t mapped);

}  // namespace gpr
