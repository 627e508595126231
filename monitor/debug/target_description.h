// Tells gdb which registers there are, in the XML of its manual's appendix "Target Descriptions".
#pragma once

#include <string>

#include "monitor/debug/gdb_registers.h"

namespace gpr::debug {

[[nodiscard]] std::string target_description(const GdbRegisters& registers);

}  // namespace gpr::debug
