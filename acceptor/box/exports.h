// What of this host's file tree sessions may see: the administrator's list, and the part of it that
// one session asked for.
#pragma once

#include <string>
#include <vector>

#include "acceptor/box/sandbox.h"
#include "transport/handshake.h"

namespace gpr {

// Libraries and what describes them, read-only, and the nodes of accelerators.
std::vector<std::string> default_exports();

// exports: globs; each stands for what it matches and all below it. An error names the rule that
// asks for more, or for what is not there. hidden: device nodes that this session must not see,
// which a wildcard passes over.
Result<std::vector<SandboxView>> plan_views(const std::vector<RemotePath>& wanted,
                                            const std::vector<std::string>& exports,
                                            const std::vector<std::string>& hidden = {});

// The profiles that stand by among these rules and for which this host has something: all of their
// rules can be shown, and of those that are not only for what the initiator lacks one is.
std::vector<std::string> standby_profiles(const std::vector<RemotePath>& wanted,
                                          const std::vector<std::string>& exports,
                                          const std::vector<std::string>& hidden = {});

}  // namespace gpr
