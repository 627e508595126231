// Packets that read and write the program's memory. After these tasks have awaited the memory they
// use only their own frame: the memory's owner may be gone.
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
