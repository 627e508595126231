// `gpr explain`: what split rules would do, before anything runs.
#include <cstdio>
#include <cstdlib>

#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/common_settings.h"
#include "tools/explanation.h"
#include "tools/find_program.h"
#include "tools/split_rules.h"

namespace gpr {

const CommandSpec& explain_spec() {
    static const CommandSpec spec{
        "explain",
        "[OPTION]... [--] PROGRAM [ARG]...",
        "Show, before running PROGRAM, which code, paths and devices would go where, and by which\n"
        "rule. Nothing is started and no acceptor is asked.",
        {acceptor_setting, split_setting, json_setting, config_setting},
        true,
        0,
        "split rules are those of 'gpr exec'.\n\n"
        "exit status: 0; 1 the program cannot be run, or needs a library that is nowhere"};
    return spec;
}

namespace {

std::string text_of(const char* variable) { return variable != nullptr ? variable : ""; }

Result<std::vector<SplitRule>> rules_of(const GatheredSettings& gathered,
                                        const Environment& environment) {
    GPR_TRY(std::vector<AcceptorAddress> acceptors, parse_acceptors(acceptors_of(gathered), true));
    // A rule needs an acceptor; here it does not matter which.
    if (acceptors.empty()) acceptors.push_back({"1", local_acceptor});
    return parse_split_rules(gathered.settings.list(split_setting.name), acceptors,
                             Profiles(profile_folders(environment)));
}

Result<Explanation> explain_program(const Words& program, const std::vector<SplitRule>& rules,
                                    const Environment& environment) {
    const std::string search_path = program_search_path(environment);
    GPR_TRY(const std::string path, find_program(program.front(), search_path));
    GPR_TRY(const ProgramChain chain, follow_program(path, search_path));
    const LinkerSettings linker{text_of(environment("LD_LIBRARY_PATH")),
                                text_of(environment("LD_PRELOAD")), read_linker_cache()};
    return explain(rules, chain, {program.begin() + 1, program.end()}, linker);
}

int show(const Explanation& explanation, bool json) {
    std::fputs((json ? explanation.json() : explanation.table()).c_str(), stdout);
    if (explanation.missing.empty()) return 0;
    complain(fmt::format("{} needs {}, found nowhere here, and no rule gives it to the acceptor",
                         explanation.program, fmt::join(explanation.missing, ", ")));
    return exit_failed;
}

}  // namespace

int explain_main(const Words& arguments) {
    const auto refuse = [](const Error& error, int status) {
        complain(error.message());
        return status;
    };
    const auto parsed = parse_command(explain_spec(), arguments);
    if (!parsed) return refuse(parsed.error(), exit_usage);
    if (parsed->wants_help) {
        std::fputs(help_text(explain_spec()).c_str(), stdout);
        return 0;
    }
    if (parsed->program.empty()) {
        complain("no program is named; write it behind the options: gpr explain --split all ls");
        return exit_usage;
    }
    const Environment environment = [](const char* name) { return getenv(name); };
    const auto gathered = gather_settings(explain_spec(), parsed->flags, environment);
    if (!gathered) return refuse(gathered.error(), exit_usage);
    const auto rules = rules_of(*gathered, environment);
    if (!rules) return refuse(rules.error(), exit_usage);
    const auto explanation = explain_program(parsed->program, *rules, environment);
    if (!explanation) return refuse(explanation.error(), exit_failed);
    return show(*explanation, Settings({parsed->flags}).toggle(json_setting.name));
}

}  // namespace gpr
