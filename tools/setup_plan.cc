#include "tools/setup_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/userfaultfd.h"

namespace gpr {
namespace {

struct Wanted {
    const char* name;
    const char* good;
    std::array<const char*, 3> bad;  // only these values are changed
};
constexpr std::array wanted_switches = {
    Wanted{"kernel.unprivileged_userns_clone", "1", {"0"}},
    Wanted{"kernel.apparmor_restrict_unprivileged_userns", "0", {"1"}},
    Wanted{"kernel.io_uring_disabled", "0", {"1", "2"}},
    Wanted{"kernel.yama.ptrace_scope", "1", {"2", "3"}},
    Wanted{"user.max_user_namespaces", "15000", {"0"}},
};

bool is_bad(const Wanted& wanted, const std::string& value) {
    return std::any_of(wanted.bad.begin(), wanted.bad.end(),
                       [&](const char* bad) { return bad != nullptr && value == bad; });
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

void plan_group(const HostState& state, const SetupWishes& wishes, std::vector<SetupStep>& steps) {
    if (!state.group_exists) {
        steps.push_back({SetupStep::Kind::run,
                         fmt::format("create the group '{}'", wishes.group),
                         "",
                         "",
                         {"groupadd", "--system", wishes.group}});
    }
    for (const std::string& user : wishes.users) {
        if (contains(state.members, user)) continue;
        steps.push_back({SetupStep::Kind::run,
                         fmt::format("make {} a member of '{}' (counts from the next login)", user,
                                     wishes.group),
                         "",
                         "",
                         {"usermod", "--append", "--groups", wishes.group, user}});
    }
}

void plan_rule(const HostState& state, const SetupWishes& wishes, std::vector<SetupStep>& steps) {
    const std::string rule =
        state.has_udev ? fmt::format("KERNEL==\"userfaultfd\", GROUP=\"{}\", MODE=\"{:04o}\"\n",
                                     wishes.group, granted_device_mode)
                       : fmt::format("z {} {:04o} root {} -\n", userfaultfd_device,
                                     granted_device_mode, wishes.group);
    if (!state.has_udev && !state.has_tmpfiles) return;
    if (state.rule_text == rule) return;
    steps.push_back(
        {SetupStep::Kind::write_file,
         fmt::format("give '{}' access to {} at every start", wishes.group, userfaultfd_device),
         state.has_udev ? udev_rule_path : tmpfiles_path,
         rule,
         {}});
}

void plan_device(const HostState& state, const SetupWishes& wishes, std::vector<SetupStep>& steps) {
    if (!state.has_device && !state.device_minor) return;
    if (!state.has_device) {
        steps.push_back({SetupStep::Kind::make_device,
                         fmt::format("make {}", userfaultfd_device),
                         userfaultfd_device,
                         "",
                         {},
                         *state.device_minor});
    }
    const bool right = state.has_device && state.device_group == wishes.group &&
                       (state.device_mode & 07777) == granted_device_mode;
    if (right) return;
    steps.push_back({SetupStep::Kind::set_owner,
                     fmt::format("give '{}' access to {} now", wishes.group, userfaultfd_device),
                     userfaultfd_device,
                     wishes.group,
                     {}});
}

void plan_switches(const HostState& state, std::vector<SetupStep>& steps) {
    std::string lasting = state.sysctl_text;
    for (const KernelSwitch& found : state.switches) {
        const auto wanted = std::find_if(wanted_switches.begin(), wanted_switches.end(),
                                         [&](const Wanted& w) { return found.name == w.name; });
        if (wanted == wanted_switches.end() || !found.value || !is_bad(*wanted, *found.value)) {
            continue;
        }
        std::string path = "/proc/sys/" + found.name;
        std::replace(path.begin(), path.end(), '.', '/');
        steps.push_back(
            {SetupStep::Kind::set_switch,
             fmt::format("set {} = {} (was {})", found.name, wanted->good, *found.value),
             path,
             wanted->good,
             {}});
        const std::string line = fmt::format("{} = {}\n", found.name, wanted->good);
        if (lasting.find(line) == std::string::npos) lasting += line;
    }
    if (lasting == state.sysctl_text) return;
    steps.push_back({SetupStep::Kind::write_file,
                     "keep these switches at every start",
                     sysctl_path,
                     lasting,
                     {}});
}

}  // namespace

std::vector<std::string> watched_switches() {
    std::vector<std::string> names;
    for (const Wanted& wanted : wanted_switches) names.emplace_back(wanted.name);
    return names;
}

std::vector<SetupStep> plan_setup(const HostState& state, const SetupWishes& wishes) {
    std::vector<SetupStep> steps;
    plan_group(state, wishes, steps);
    plan_rule(state, wishes, steps);
    plan_device(state, wishes, steps);
    plan_switches(state, steps);
    return steps;
}

}  // namespace gpr
