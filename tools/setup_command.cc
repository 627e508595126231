// `gpr setup`: grants normal users what gpr needs, and reports what it did.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/setup_plan.h"

namespace gpr {

const CommandSpec& setup_spec() {
    static const CommandSpec spec{
        "setup",
        "[--user NAME]... [--group NAME] [--check]",
        "Grant normal users what gpr needs: access to /dev/userfaultfd for a group, and the "
        "kernel\n"
        "switches without which they cannot have namespaces, io_uring or ptrace. Run as root.",
        {
            {"user", SettingKind::list, "NAME", "make NAME a member (default: who called sudo)"},
            {"group", SettingKind::text, "NAME", "the group that gets access (gpr)"},
            {"check", SettingKind::toggle, "", "only say what would be done; 1 if anything would"},
        },
        false,
        0,
        "A userfaultfd that stops the kernel's own accesses is a tool of many attacks, so access "
        "is\n"
        "for members of the group only. BPF stays root's: without it gpr is slower, not less "
        "right."};
    return spec;
}

namespace {

SetupWishes wishes_from(const Settings& settings) {
    SetupWishes wishes;
    wishes.group = settings.text("group", wishes.group);
    wishes.users = settings.list("user");
    const char* caller = getenv("SUDO_USER");
    if (wishes.users.empty() && caller != nullptr && std::string(caller) != "root") {
        wishes.users.emplace_back(caller);
    }
    return wishes;
}

int apply_all(const std::vector<SetupStep>& steps) {
    for (const SetupStep& step : steps) {
        if (auto done = apply_step(step, ""); !done) {
            complain(fmt::format("could not {}: {}", step.what, done.error().message()));
            return exit_failed;
        }
        fmt::print("done: {}{}\n", step.what, step.path.empty() ? "" : " (" + step.path + ")");
    }
    return 0;
}

int check_only(const std::vector<SetupStep>& steps) {
    for (const SetupStep& step : steps) {
        fmt::print("would {}{}\n", step.what, step.path.empty() ? "" : " (" + step.path + ")");
    }
    if (steps.empty()) std::puts("nothing is left to do");
    return steps.empty() ? 0 : exit_failed;
}

int set_up(const HostState& state, const SetupWishes& wishes) {
    if (geteuid() != 0) {
        complain("setup changes the host; run it as root: 'sudo gpr setup'");
        return exit_failed;
    }
    const auto steps = plan_setup(state, wishes);
    if (const int status = apply_all(steps); status != 0) return status;
    if (steps.empty()) std::puts("nothing was left to do");
    if (!state.has_udev && !state.has_tmpfiles) {
        std::puts("note: nothing here sets device permissions at start; run this again after one");
    }
    std::puts("check as the user, in a new login: gpr health");
    return 0;
}

}  // namespace

int setup_main(const Words& arguments) {
    const auto parsed = parse_command(setup_spec(), arguments);
    if (!parsed) {
        complain(parsed.error().message());
        return exit_usage;
    }
    if (parsed->wants_help) {
        std::fputs(help_text(setup_spec()).c_str(), stdout);
        return 0;
    }
    const Settings settings({parsed->flags});
    const SetupWishes wishes = wishes_from(settings);
    const HostState state = HostState::read("", wishes);
    if (!state.has_device && !state.device_minor) {
        complain(
            "this kernel offers no /dev/userfaultfd; run Linux 6.8 or newer with"
            " CONFIG_USERFAULTFD");
        return exit_failed;
    }
    return settings.toggle("check") ? check_only(plan_setup(state, wishes)) : set_up(state, wishes);
}

}  // namespace gpr
