#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "monitor/launch/attach.h"
#include "tools/commands.h"
#include "tools/process_number.h"
#include "tools/session_options.h"

namespace gpr {

const CommandSpec& attach_spec() {
    static const std::string notes =
        split_rule_notes +
        "\nexit status: 0 when the process has ended; 125 gpr failed, or it cannot be attached";
    static const CommandSpec spec{
        "attach",
        "[OPTION]... PID",
        "Split a process that runs already over this host and acceptors, with all its threads. gpr "
        "stays\nin the foreground until the process ends; Ctrl-C or 'gpr detach' lets it go on "
        "without gpr.",
        session_settings(),
        false,
        1,
        notes};
    return spec;
}

namespace {}  // namespace

int attach_main(const Words& arguments) {
    const auto parsed = parse_command(attach_spec(), arguments);
    if (!parsed) {
        complain(parsed.error().message());
        return exit_gpr_failed;
    }
    if (parsed->wants_help) {
        std::fputs(help_text(attach_spec()).c_str(), stdout);
        return 0;
    }
    const auto pid = process_number(*parsed, "gpr attach --acceptor HOST:PORT 1234");
    if (!pid) {
        complain(pid.error().message());
        return exit_gpr_failed;
    }
    auto options =
        session_options(attach_spec(), *parsed, [](const char* name) { return getenv(name); });
    if (!options) {
        complain(options.error().message());
        return exit_gpr_failed;
    }
    options->attaches = true;
    std::error_code unknown;
    options->program_path =
        std::filesystem::read_symlink(fmt::format("/proc/{}/exe", *pid), unknown).string();
    announce_seed(*options);
    tell_of_session(*options, fmt::format("attaching to process {}", *pid));
    return run_attach(*options, *pid, start_local_acceptor);
}

}  // namespace gpr
