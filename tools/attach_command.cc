#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "monitor/launch/attach.h"
#include "monitor/launch/background.h"
#include "tools/commands.h"
#include "tools/process_number.h"
#include "tools/session_options.h"

namespace gpr {

namespace {

std::vector<Setting> attach_settings() {
    std::vector<Setting> settings = session_settings();
    settings.push_back({"background", SettingKind::toggle, "",
                        "return as soon as the process goes on, split", false, 'b'});
    return settings;
}

}  // namespace

const CommandSpec& attach_spec() {
    static const std::string notes = split_rule_notes +
                                     "\nexit status: 0 when the process has ended, or is split "
                                     "with --background; 125 gpr failed, or it cannot be attached";
    static const CommandSpec spec{
        "attach",
        "[OPTION]... PID",
        "Split a process that runs already, and its descendants, over this host and acceptors. gpr "
        "stays\nin the foreground until the process ends, if not told otherwise; Ctrl-C or 'gpr "
        "detach' lets it\ngo on without gpr.",
        attach_settings(),
        false,
        1,
        notes};
    return spec;
}

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
    const auto attach = [&](const GoesOnAlone& is_attached) {
        return run_attach(*options, *pid, start_local_acceptor, is_attached);
    };
    if (!Settings({parsed->flags}).toggle("background")) return attach([](int) {});
    return in_background(attach);
}

}  // namespace gpr
