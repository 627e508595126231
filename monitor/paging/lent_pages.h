// The content of shared pages at the time when home lent them. Home's mappings cannot fault, so
// home may go on writing a lent page; when the page comes back, only what the borrower changed is
// written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>

namespace gpr::paging {

using LentPages = std::map<uint64_t, std::shared_ptr<const std::byte>>;  // by page of the object

// Removes what was lent at the time of `then` and is back now, unless it has been lent again since.
void forget_returned(LentPages& lent, const LentPages& then);

// Calls write(offset, bytes) for each part of a page that differs from what was lent; for the whole
// page if that is unknown. False if one of the calls returned false.
bool write_changes(std::span<const std::byte> page, const LentPages& lent, uint64_t number,
                   const std::function<bool(size_t, std::span<const std::byte>)>& write);

}  // namespace gpr::paging
