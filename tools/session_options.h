// What every command that makes a session is told: where to run what, and what to say of it.
#pragma once

#include <string>
#include <vector>

#include "monitor/launch/run.h"
#include "monitor/rules/exec_options.h"
#include "tools/command_line.h"

namespace gpr {

// Split rules and addresses, for the end of a help text.
extern const std::string split_rule_notes;

std::vector<Setting> session_settings();

// The flags of `spec`, the environment and the configuration; without what the session is about.
Result<ExecOptions> session_options(const CommandSpec& spec, const ParsedCommand& parsed,
                                    const Environment& environment);

// On stderr, where the seed of `chaos` was not the user's choice.
void announce_seed(const ExecOptions& options);
// The beginning of the story that --log-level info tells. what: is done now.
void tell_of_session(const ExecOptions& options, const std::string& what);
Result<LocalAcceptor> start_local_acceptor(const LogOptions& log);

}  // namespace gpr
