// How the supervisor reads and writes the program's memory, for arguments and results of calls.
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

    // Acquires the pages and writes them. False (EFAULT) if a part is not mapped or the program
    // itself could not write it.
    Task<bool> write(Fragment& fragment, Address to, std::span<const std::byte> bytes);
    // The same for private memory that the program itself may only read or execute.
    Task<bool> write_by_debugger(Fragment& fragment, Address to, std::span<const std::byte> bytes);
    // The same for reading.
    Task<bool> read(Fragment& fragment, Address from, std::span<std::byte> bytes);
    // A string that ends with a zero within `most` bytes; nullopt if it does not, or is not mapped.
    Task<std::optional<std::string>> read_text(Fragment& fragment, Address from, size_t most);

private:
    Task<bool> write(Fragment& fragment, Address to, std::span<const std::byte> bytes,
                     bool by_debugger);

    Core& core_;
    Pager& pager_;
};

}  // namespace gpr::paging
