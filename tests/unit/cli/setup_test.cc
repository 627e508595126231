#include <doctest/doctest.h>

#include <algorithm>

#include "tests/unit/temporary_folder.h"
#include "tools/setup_plan.h"

using gpr::HostState;
using gpr::SetupStep;
using gpr::SetupWishes;

namespace {

// A host on which nothing is left to do.
HostState finished_host() {
    HostState state;
    state.group_exists = true;
    state.members = {"ann"};
    state.has_device = true;
    state.device_mode = S_IFCHR | 0660;
    state.device_group = "gpr";
    state.has_udev = true;
    state.rule_text = "KERNEL==\"userfaultfd\", GROUP=\"gpr\", MODE=\"0660\"\n";
    state.switches = {{"kernel.unprivileged_userns_clone", "1"},
                      {"kernel.io_uring_disabled", "0"},
                      {"kernel.yama.ptrace_scope", std::nullopt}};
    return state;
}

const SetupWishes wishes{"gpr", {"ann"}};

}  // namespace

TEST_CASE("a finished host needs nothing") { CHECK(plan_setup(finished_host(), wishes).empty()); }

TEST_CASE("a fresh host gets group, member, rule and device, in that order") {
    HostState state = finished_host();
    state.group_exists = false;
    state.members.clear();
    state.device_mode = S_IFCHR | 0600;
    state.device_group = "root";
    state.rule_text.clear();
    const auto steps = plan_setup(state, wishes);
    REQUIRE(steps.size() == 4);
    CHECK(steps[0].words == std::vector<std::string>{"groupadd", "--system", "gpr"});
    CHECK(steps[1].words.back() == "ann");
    CHECK(steps[2].path == gpr::udev_rule_path);
    CHECK(steps[3].kind == SetupStep::Kind::set_owner);
}

TEST_CASE("wider access than ours is narrowed") {
    HostState state = finished_host();
    state.device_mode = S_IFCHR | 0666;
    const auto steps = plan_setup(state, wishes);
    REQUIRE(steps.size() == 1);
    CHECK(steps[0].kind == SetupStep::Kind::set_owner);
}

TEST_CASE("a missing node is made only where the kernel has the device") {
    HostState state = finished_host();
    state.has_device = false;
    CHECK(plan_setup(state, wishes).empty());
    state.device_minor = 126;
    const auto steps = plan_setup(state, wishes);
    REQUIRE(steps.size() == 2);
    CHECK(steps[0].kind == SetupStep::Kind::make_device);
    CHECK(steps[0].device_minor == 126);
    CHECK(steps[1].kind == SetupStep::Kind::set_owner);
}

TEST_CASE("only values that forbid gpr are changed, and kept for the next start") {
    HostState state = finished_host();
    state.switches = {{"kernel.unprivileged_userns_clone", "0"},
                      {"kernel.yama.ptrace_scope", "1"},
                      {"kernel.io_uring_disabled", "2"}};
    state.sysctl_text = "kernel.io_uring_disabled = 0\n";
    const auto steps = plan_setup(state, wishes);
    REQUIRE(steps.size() == 3);
    CHECK(steps[0].path == "/proc/sys/kernel/unprivileged_userns_clone");
    CHECK(steps[0].text == "1");
    CHECK(steps[1].path == "/proc/sys/kernel/io_uring_disabled");
    CHECK(steps[2].path == gpr::sysctl_path);
    CHECK(steps[2].text == "kernel.io_uring_disabled = 0\nkernel.unprivileged_userns_clone = 1\n");
}

TEST_CASE("without udev a tmpfiles line does it") {
    HostState state = finished_host();
    state.has_udev = false;
    state.has_tmpfiles = true;
    const auto steps = plan_setup(state, wishes);
    REQUIRE(steps.size() == 1);
    CHECK(steps[0].path == gpr::tmpfiles_path);
    CHECK(steps[0].text == "z /dev/userfaultfd 0660 root gpr -\n");
    state.has_tmpfiles = false;
    CHECK(plan_setup(state, wishes).empty());
}

TEST_CASE("steps change files below the root they are given, and are then done") {
    const gpr::TemporaryFolder root;
    root.write("usr/bin/udevadm", "", 0755);
    root.write("proc/sys/kernel/io_uring_disabled", "2\n");
    root.write("proc/misc", "126 userfaultfd\n 60 other\n");
    HostState state = HostState::read(root.path(), wishes);
    CHECK(state.has_udev);
    CHECK(state.device_minor == 126U);

    for (const SetupStep& step : plan_setup(state, wishes)) {
        const bool only_files =
            step.kind == SetupStep::Kind::write_file || step.kind == SetupStep::Kind::set_switch;
        if (only_files) REQUIRE(apply_step(step, root.path()));
    }
    state = HostState::read(root.path(), wishes);
    CHECK(state.rule_text == "KERNEL==\"userfaultfd\", GROUP=\"gpr\", MODE=\"0660\"\n");
    CHECK(state.sysctl_text == "kernel.io_uring_disabled = 0\n");
    const auto steps = plan_setup(state, wishes);
    CHECK(std::none_of(steps.begin(), steps.end(), [](const SetupStep& step) {
        return step.kind == SetupStep::Kind::write_file || step.kind == SetupStep::Kind::set_switch;
    }));
}
