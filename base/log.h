// Where log lines go. Call sites use spdlog::info(...) and friends; this sets up what is behind it.
#pragma once

#include <spdlog/spdlog.h>

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpr {

// Replaces spdlog's default logger. An empty file means stderr, with lines as `gpr: text`; for
// other places see OutputPlace. A file is appended to, one write() a line, so that processes may
// share it. The descriptor is close-on-exec. Levels: trace, debug, info, warning, error, off.
//
// stderr may be a pipe whose lock the supervised program holds while it waits for us: what runs
// inside a session's loop logs to a file, or through a SideWriter.
Result<> start_logging(const std::string& file, const std::string& level);

// The same with lines as on stderr, for whoever writes them.
using WriteLine = std::function<void(std::string_view)>;
void log_through(WriteLine write, const std::string& level);

[[nodiscard]] bool is_log_level(const std::string& level);

}  // namespace gpr
