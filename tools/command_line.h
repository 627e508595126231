// One command of gpr: its flags, and how its command line is parsed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tools/settings.h"

namespace gpr {

struct CommandSpec {
    std::string_view name;  // "exec", "token new"
    std::string_view usage;
    std::string_view summary;
    std::vector<Setting> settings;
    bool runs_program = false;  // the first word that is not a flag ends gpr's own options
    size_t most_words = 0;      // how many other words it takes, such as ADDR
    std::string_view notes = "";
    std::string_view details = "";  // paragraphs for the manual page, with a line between them
};

struct ParsedCommand {
    Answers flags;
    std::vector<std::string> words;    // neither flags nor their values
    std::vector<std::string> program;  // if runs_program: the program and its arguments, unchanged
    bool wants_help = false;
};

// An error names the flag that may have been meant.
Result<ParsedCommand> parse_command(const CommandSpec& spec, std::vector<std::string> arguments);

std::string help_text(const CommandSpec& spec);
// Whether its value is the word behind the flag.
bool takes_next_word(const Setting& setting);
// As the help text has it: "-n, --device-count COUNT".
std::string shown_flag(const Setting& setting);
// What the help text says of the environment and the configuration file; empty if the command reads
// none.
std::string configuration_note(const CommandSpec& spec);

struct ProgramCut {
    std::vector<std::string> options;  // gpr's
    std::vector<std::string> program;
};

// Finds the end of gpr's own options: at `--`, or at the first word that is neither a flag nor the
// value of one. What follows is not interpreted.
ProgramCut cut_program(std::span<const Setting> settings,
                       const std::vector<std::string>& arguments);

}  // namespace gpr
