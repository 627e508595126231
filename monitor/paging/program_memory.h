// The program's memory as the supervisor reads and writes it: for a call's arguments and results.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/address.h"
#include "base/task.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class ProgramMemory {
public:
    ProgramMemory(Core& core, Pager& pager) : core_(core), pager_(pager) {}

    // Writes into the program's memory what the program may then see; acquires what it needs.
    // False: a part of it is not mapped, or the program itself could not: EFAULT.
    Task<bool> write(Fragment& fragment, Address to, std::span<const std::byte> bytes);
    // The same for reading.
    Task<bool> read(Fragment& fragment, Address from, std::span<std::byte> bytes);
    // A string that ends with a zero within `most` bytes. Nothing: it does not, or is not mapped.
    Task<std::optional<std::string>> read_text(Fragment& fragment, Address from, size_t most);

private:
    Core& core_;
    Pager& pager_;
};

}  // namespace gpr::paging
