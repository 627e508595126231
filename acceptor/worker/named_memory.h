// Which memory a driver may be asked to pin, told from a request of which only the size is known.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/address.h"
#include "mm/address_space.h"

namespace gpr::worker {

// words: the request's argument. One that is the address of a page of private memory that may be
// written is taken for the begin of what is to be pinned; the largest other word, or half of one,
// that is no address and not beyond the end of that memory for its size in bytes, or for its last
// byte's offset. Whole pages, at most most_bytes in all. Words that merely look so cost time,
// nothing else.
std::vector<Range> named_memory(AddressSpace& space, std::span<const uint64_t> words,
                                uint64_t most_bytes);

}  // namespace gpr::worker
