// Options of every command that makes a session: where to run what, and what to report.
#pragma once

#include <string>
#include <vector>

#include "monitor/launch/run.h"
#include "monitor/rules/exec_options.h"
#include "tools/command_line.h"

namespace gpr {

// Explains split rules and addresses at the end of a help text.
extern const std::string split_rule_notes;

std::vector<Setting> session_settings();

// Options from the flags of `spec`, the environment and the configuration file; not what the
// session is about.
Result<ExecOptions> session_options(const CommandSpec& spec, const ParsedCommand& parsed,
                                    const Environment& environment);

// Prints the seed of `chaos` to stderr if the user did not choose it.
void announce_seed(const ExecOptions& options);
// Writes the first lines of --log-level info. `what` is what happens now.
void tell_of_session(const ExecOptions& options, const std::string& what);
Result<LocalAcceptor> start_local_acceptor(const LogOptions& log);

}  // namespace gpr
