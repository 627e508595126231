// Plans what an administrator must grant so that normal users can run gpr: a list of small changes,
// derived from the state of the host without touching it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace gpr {

inline constexpr const char* udev_rule_path = "/etc/udev/rules.d/60-gpr.rules";
inline constexpr const char* tmpfiles_path = "/etc/tmpfiles.d/gpr.conf";
inline constexpr const char* sysctl_path = "/etc/sysctl.d/60-gpr.conf";

// Only for members of the group, because a userfaultfd that can stop the kernel helps many attacks.
inline constexpr mode_t granted_device_mode = 0660;

struct SetupWishes {
    std::string group = "gpr";       // who may open /dev/userfaultfd
    std::vector<std::string> users;  // they become members of the group
};

struct KernelSwitch {
    std::string name;                  // as sysctl writes it
    std::optional<std::string> value;  // the current value; nullopt: this kernel does not have it
};

// Switches that can keep a normal user from running gpr.
std::vector<std::string> watched_switches();

struct HostState {
    bool group_exists = false;
    std::vector<std::string> members;  // of the group
    bool has_device = false;
    std::optional<unsigned> device_minor;  // from /proc/misc, if there is no device node
    mode_t device_mode = 0;
    std::string device_group;
    bool has_udev = false;
    bool has_tmpfiles = false;
    std::string rule_text;  // current content of our udev rule or tmpfiles line; empty: none
    std::string sysctl_text;
    std::vector<KernelSwitch> switches;

    // Paths are looked up below `root`; "" is the real root. Groups are always the real ones.
    static HostState read(const std::string& root, const SetupWishes& wishes);
};

struct SetupStep {
    enum class Kind { run, write_file, make_device, set_owner, set_switch };

    Kind kind;
    std::string what;                // for people
    std::string path;                // file, device or sysctl, as a path below the root
    std::string text;                // content, value, or group
    std::vector<std::string> words;  // of the command to run
    unsigned device_minor = 0;
};

// In the order in which they must be done; empty if nothing is left to do.
std::vector<SetupStep> plan_setup(const HostState& state, const SetupWishes& wishes);

Result<> apply_step(const SetupStep& step, const std::string& root);

}  // namespace gpr
