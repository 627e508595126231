// Which files of this host sessions may see: the administrator's list, and the part of it that one
// session has asked for.
#pragma once

#include <string>
#include <vector>

#include "acceptor/box/folder_names.h"
#include "acceptor/box/sandbox.h"
#include "transport/handshake.h"

namespace gpr {

// Libraries and their data files, read-only, and the device nodes of accelerators.
std::vector<std::string> default_exports();

// exports: globs, each for the files that it matches and everything below. hidden: device nodes
// that this session must not see; a wildcard skips them. An error names the rule that asks for more
// than is exported, or for a file that does not exist.
Result<std::vector<SandboxMount>> plan_mounts(const std::vector<RemotePath>& wanted,
                                              const std::vector<std::string>& exports,
                                              const std::vector<std::string>& hidden = {});

// Those of the rules' standby profiles that this host has files for: all their rules can be shown,
// and one of them exists that is not only for files missing at home.
std::vector<std::string> standby_profiles(const std::vector<RemotePath>& wanted,
                                          const std::vector<std::string>& exports,
                                          const std::vector<std::string>& hidden,
                                          FolderNames& folders);
// Reads what most profiles look into, before there is a session.
void read_ahead(FolderNames& folders);

}  // namespace gpr
