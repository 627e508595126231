// Packets that read and write the program's memory. What they return after the program's memory
// was awaited depends on nothing that may be gone by then.
#pragma once

#include <string>

#include "base/task.h"
#include "monitor/debug/debuggee.h"

namespace gpr::debug {

enum class MemoryForm : uint8_t { hexadecimal, binary };

// place: "address,length". The answer may be shorter than asked for.
Task<std::string> read_memory(DebuggeeMemory& memory, std::string place, MemoryForm form);
// what: "address,length:bytes".
Task<std::string> write_memory(DebuggeeMemory& memory, std::string what, MemoryForm form);

}  // namespace gpr::debug
