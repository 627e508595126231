// Where log lines go. Callers use spdlog::info(...) and its like; this sets up the logger.
#pragma once

#include <spdlog/spdlog.h>

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpr {

// Replaces spdlog's default logger. An empty file name means stderr, with lines as `gpr: text`; for
// other special names see OutputPlace. A file is appended to, with one write() for each line, so
// that processes may share it. The descriptor is close-on-exec. Levels: trace, debug, info,
// warning, error, off.
//
// stderr may be a pipe whose lock the supervised program holds while it waits for us. Therefore
// code inside a session's loop logs to a file, or through a SideWriter.
Result<> start_logging(const std::string& file, const std::string& level);

// The same, with lines as on stderr, which are passed to `write`.
using WriteLine = std::function<void(std::string_view)>;
void log_through(WriteLine write, const std::string& level);

[[nodiscard]] bool is_log_level(const std::string& level);

}  // namespace gpr
