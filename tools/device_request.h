// Which devices a session asks for: by option, or by the variables that the vendors' libraries
// read.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/rules/exec_options.h"
#include "tools/settings.h"

namespace gpr {

inline constexpr Setting device_setting{"device", SettingKind::list, "ID",
                                        "a device to use, with others; may be repeated"};
inline constexpr Setting device_count_setting{
    "device-count", SettingKind::text,
    "COUNT",        "so many devices, for this session alone",
    false,          'n'};

// Fills in the options about devices. The variables mean the acceptor's devices only if rules give
// those device nodes to the acceptor; otherwise they concern this host.
Result<> request_devices(const Settings& settings, const Environment& environment,
                         ExecOptions& options);

}  // namespace gpr
