// Names of gpr's own processes in /proc/PID/comm.
#pragma once

namespace gpr {

inline constexpr const char* monitor_process_name = "gpr-monitor";
inline constexpr const char* worker_process_name = "gpr-worker";  // of an acceptor's session
inline constexpr const char* spare_process_name = "gpr-spare";    // a worker without a session yet

}  // namespace gpr
