// Huge pages that a program asks for (MAP_HUGETLB, hugetlbfs, memfd_create with MFD_HUGETLB). The
// kernel at home says whether there are any. Private ones are small pages in truth, which can move;
// shared ones are used at home.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "monitor/tracee/stub_thread.h"

namespace gpr {

// How much mmap maps when called so: whole pages, of the size that these have. link: of the file,
// in /proc.
uint64_t mapped_size(const uint64_t* args, const std::string& link);
// Whether the link is to such a file.
[[nodiscard]] bool has_huge_pages(const std::string& link);

// After mmap with MAP_HUGETLB of private memory: the same range of small pages.
Task<int64_t> make_small(StubThread& caller, const uint64_t* args, int64_t mapped);

}  // namespace gpr
