#include "tools/exec_command.h"

#include <cstdio>
#include <cstdlib>

#include "monitor/launch/run.h"
#include "tools/commands.h"
#include "tools/common_settings.h"
#include "tools/find_program.h"
#include "tools/option_details.h"
#include "tools/session_options.h"

namespace gpr {

namespace {

std::vector<Setting> exec_settings() {
    std::vector<Setting> settings = session_settings();
    settings.push_back(with_details({"gdb", SettingKind::text, "ADDR",
                                     "let gdb debug PROGRAM from its first instruction on: it is "
                                     "waited for at this TCP address"},
                                    details::gdb));
    return settings;
}

}  // namespace

const CommandSpec& exec_spec() {
    static const std::string notes =
        split_rule_notes +
        "\nexit status: the program's; 125 gpr failed; 126 the program cannot be executed; 127 not "
        "found";
    static const CommandSpec spec{
        "exec",
        "[OPTION]... [--] PROGRAM [ARG]...",
        "Run PROGRAM split over this host and acceptors. Options after PROGRAM are PROGRAM's.",
        exec_settings(),
        true,
        0,
        notes,
        "At a terminal, what takes more than two seconds is told: a connection, the start of the "
        "program, or a link that is too slow for what the program needs."};
    return spec;
}

tl::expected<ExecOptions, ExecRefusal> make_exec_options(const ParsedCommand& parsed,
                                                         const Environment& environment) {
    if (parsed.program.empty()) {
        return tl::unexpected(ExecRefusal{
            {0,
             "no program is named; write it behind the options, as in 'gpr exec --acceptor local"
             " ls -l'"}});
    }
    auto options = session_options(exec_spec(), parsed, environment);
    if (!options) return tl::unexpected(ExecRefusal{options.error()});

    options->program = parsed.program.front();
    options->args.assign(parsed.program.begin() + 1, parsed.program.end());
    auto path = find_program(options->program, program_search_path(environment));
    if (!path) return tl::unexpected(ExecRefusal{path.error(), exit_status_of(path.error())});
    options->program_path = *path;
    return *options;
}

int exec_main(const Words& arguments) { return exec_debugged(arguments, -1); }

int exec_debugged(const Words& arguments, int gdb_socket) {
    const auto parsed = parse_command(exec_spec(), arguments);
    if (!parsed) {
        complain(parsed.error().message());
        return exit_gpr_failed;
    }
    if (parsed->wants_help) {
        std::fputs(help_text(exec_spec()).c_str(), stdout);
        return 0;
    }
    const Environment environment = [](const char* name) { return getenv(name); };
    const auto options = make_exec_options(*parsed, environment);
    if (!options) {
        complain(options.error().error.message());
        return options.error().status;
    }
    const auto settings = gather_settings(exec_spec(), parsed->flags, environment);
    const GdbWanted gdb{settings ? settings->settings.text("gdb") : "", gdb_socket};
    announce_seed(*options);
    tell_of_session(*options, "running " + options->program_path);
    return run_exec(*options, start_local_acceptor, gdb);
}

}  // namespace gpr
