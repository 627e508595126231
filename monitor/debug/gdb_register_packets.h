// Packets that read and write registers, and stop replies, which have some with them.
#pragma once

#include <string>
#include <string_view>

#include "monitor/debug/debuggee.h"
#include "monitor/debug/gdb_threads.h"

namespace gpr::debug {

// packet: g, G, p or P with what follows. tid: the thread that is meant.
[[nodiscard]] std::string answer_register_packet(Debuggee& debuggee, pid_t tid,
                                                 std::string_view packet);
// T, W or X. Also says which thread it is that stopped.
[[nodiscard]] std::string stop_reply(Debuggee& debuggee, const GdbThreads& threads,
                                     const StopReason& why);

}  // namespace gpr::debug
