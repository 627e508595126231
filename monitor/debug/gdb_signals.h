// gdb has signal numbers of its own, the same on every system (its include/gdb/signals.def).
#pragma once

namespace gpr::debug {

[[nodiscard]] int to_gdb_signal(int signal);
// 0: Linux has no such signal.
[[nodiscard]] int from_gdb_signal(int gdb_signal);

}  // namespace gpr::debug
