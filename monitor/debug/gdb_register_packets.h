// Packets that read and write registers, and stop replies, which contain some registers.
#pragma once

#include <string>
#include <string_view>

#include "monitor/debug/debuggee.h"
#include "monitor/debug/gdb_threads.h"

namespace gpr::debug {

// packet: g, G, p or P with its arguments, for the chosen thread.
[[nodiscard]] std::string answer_register_packet(const GdbThreads& threads,
                                                 std::string_view packet);
// A T, W or X packet of this process. T also names the thread that stopped.
[[nodiscard]] std::string stop_reply(Debuggee& debuggee, const GdbThreads& threads,
                                     const StopReason& why);

}  // namespace gpr::debug
