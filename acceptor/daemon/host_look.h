// What an acceptor looks at on its host when it starts, and warns of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "acceptor/daemon/acceptor_options.h"
#include "base/result.h"

namespace gpr {

// Features of the kernel; warns of those that it lacks.
std::vector<std::string> present_features();
// Globs that match no file.
void warn_of_missing_exports(const std::vector<std::string>& exports);
// For sessions with this host's network.
void warn_of_abstract_sockets();
uint64_t host_memory();  // bytes
// The folder for contents of files; empty: none. An error if the administrator wants one that
// cannot be used.
Result<std::string> usable_cache(const AcceptorOptions& options);

}  // namespace gpr
