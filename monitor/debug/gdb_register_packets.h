// Packets that read and write registers, and stop replies, which contain some registers.
#pragma once

#include <string>
#include <string_view>

#include "monitor/debug/debuggee.h"
#include "monitor/debug/gdb_threads.h"

namespace gpr::debug {

// packet: g, G, p or P with its arguments, for thread `tid`.
[[nodiscard]] std::string answer_register_packet(Debuggee& debuggee, pid_t tid,
                                                 std::string_view packet);
// A T, W or X packet. T also names the thread that stopped.
[[nodiscard]] std::string stop_reply(Debuggee& debuggee, const GdbThreads& threads,
                                     const StopReason& why);

}  // namespace gpr::debug
