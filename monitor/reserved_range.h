// Memory calls about the addresses where gpr itself lies in the program. To the program they are an
// unmapped range in which no mapping finds room.
#pragma once

#include <cstdint>
#include <optional>

namespace gpr {

// The result, if the call is not to be made.
std::optional<int64_t> answer_about_reserved(uint64_t number, const uint64_t* args);
// Of mmap: where the kernel shall try first.
uint64_t hint_beside_reserved(const uint64_t* args);

}  // namespace gpr
