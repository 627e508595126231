// What pages of shared memory were when home lent them: home goes on writing them, because its
// mapping cannot fault, so of a page that comes back only the borrower's writes count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>

namespace gpr::paging {

using LentPages = std::map<uint64_t, std::shared_ptr<const std::byte>>;  // by page of the object

// All that was lent then is here again, but what has been lent another time since.
void forget_returned(LentPages& lent, const LentPages& then);

// Calls write(offset, bytes) for each part of a page that is not what it was; for all of it if
// nobody knows. False: one said that it could not.
bool write_changes(std::span<const std::byte> page, const LentPages& lent, uint64_t number,
                   const std::function<bool(size_t, std::span<const std::byte>)>& write);

}  // namespace gpr::paging
