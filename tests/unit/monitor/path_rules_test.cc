#include "monitor/rules/path_rules.h"

#include <doctest/doctest.h>

#include "monitor/rules/exec_options.h"

namespace gpr {
namespace {

PathRules some_rules() {
    return PathRules({{"/etc/OpenCL", "", false},
                      {"/usr/lib/llvm-*", "", false},
                      {"/usr/lib/*", "", true},
                      {"/dev/nvidia*", "", false}});
}

PathOwner owner(std::string_view path) { return some_rules().owner_of(path).owner; }

TEST_CASE("a glob covers what it matches and all below") {
    CHECK(covers("/opt/rocm*", "/opt/rocm-6.0"));
    CHECK(covers("/opt/rocm*", "/opt/rocm-6.0/lib/libhsa.so"));
    CHECK(covers("/opt", "/opt/a/b/c"));
    CHECK(!covers("/opt", "/optional"));
    CHECK(!covers("/opt/a", "/opt"));
    CHECK(!covers("/opt/*", "/opt"));
    CHECK(!covers("/*/lib", "/usr/local/lib"));
    CHECK(covers("/dev/nvidia[0-9]", "/dev/nvidia3"));
    CHECK(!covers("/dev/nvidia[0-9]", "/dev/nvidiactl"));
}

TEST_CASE("the first rule that matches decides, and says which it is") {
    CHECK(owner("/etc/OpenCL/vendors/pocl.icd") == PathOwner::acceptor);
    CHECK(owner("/usr/lib/llvm-14/lib/libLLVM.so") == PathOwner::acceptor);
    CHECK(owner("/usr/lib/libz.so.1") == PathOwner::whoever);
    CHECK(owner("/dev/nvidia-caps/cap1") == PathOwner::acceptor);
    CHECK(owner("/etc/passwd") == PathOwner::home);
    CHECK(owner("/usr/lib") == PathOwner::home);
    CHECK(some_rules().owner_of("/usr/lib/libz.so.1").rule == 2);
    CHECK(some_rules().owner_of("/dev/nvidia0").rule == 3);
}

TEST_CASE("paths are what is written, without detours") {
    CHECK(owner("/etc/./OpenCL//vendors/") == PathOwner::acceptor);
    CHECK(owner("/etc/ssl/../OpenCL") == PathOwner::acceptor);
    CHECK(owner("/etc/OpenCL/../passwd") == PathOwner::home);
    CHECK(owner("/etc/OpenCL/") == PathOwner::acceptor);
}

TEST_CASE("whatever a rule matches begins in a way that is told") {
    const PathRules rules({{"/dev/nvidia*", "", false, "cuda"},
                           {"/usr/lib/llvm-*/bin", "", true, "opencl"},
                           {"/usr/lib/*", "", true, "opencl"},
                           {"", "", false, "kvm"},
                           {"/etc/OpenCL", "", false, ""}},
                          {{"lib", "/usr/lib"}, {"devices", "/dev"}, {"e", "/etc"}});
    const std::vector<std::string> beginnings = rules.beginnings();
    CHECK(beginnings == std::vector<std::string>{"/dev/nvidia", "/devices/nvidia", "/usr/lib/llvm-",
                                                 "/lib/llvm-", "/etc/OpenCL", "/e/OpenCL"});
    CHECK(rules.owner_of("/lib/llvm-14/bin/clang").owner == PathOwner::whoever);
    CHECK(rules.owner_of("/devices/nvidia0").owner == PathOwner::acceptor);
    // A link to what only begins like a rule may be followed into what the rule matches.
    const PathRules wide({{"/usr/*/libz.so", "", false}}, {{"lib", "/usr/lib"}});
    CHECK(wide.beginnings() == std::vector<std::string>{"/usr/", "/lib"});
}

TEST_CASE("a profile's rule for all of a folder tells nothing until the profile is used") {
    PathRules rules({{"/usr/lib/*", "", true, "opencl"}, {"/dev/dri", "", false, "opencl"}});
    CHECK(rules.beginnings() == std::vector<std::string>{"/dev/dri"});
    rules.use(1);
    CHECK(rules.beginnings() == std::vector<std::string>{"/usr/lib/", "/dev/dri"});
}

TEST_CASE("relative paths begin in a directory of home's") {
    CHECK(owner("etc/OpenCL") == PathOwner::home);
    CHECK(owner("../etc/OpenCL") == PathOwner::home);
    CHECK(owner("") == PathOwner::home);
}

TEST_CASE("only rules about files are among them, in their order") {
    std::vector<SplitRule> rules(5);
    rules[0] = {SplitKind::lib, "libz*"};
    rules[1] = {SplitKind::missing, "/usr/lib/*"};
    rules[2] = {SplitKind::all};
    rules[3] = {SplitKind::dev, "/dev/kvm"};
    rules[4] = {SplitKind::path, "/etc/OpenCL", "", 0, "/srv/cl"};
    CHECK(path_rules_of(rules) == std::vector<RemotePath>{{"/usr/lib/*", "", true},
                                                          {"/dev/kvm", "", false},
                                                          {"/etc/OpenCL", "/srv/cl", false}});
    CHECK(path_rules_of({rules[0]}).empty());
}

TEST_CASE("the part of a glob without wildcards is whole directories") {
    CHECK(literal_part("/usr/lib/llvm-*") == "/usr/lib");
    CHECK(literal_part("/usr/lib/llvm-14") == "/usr/lib/llvm-14");
    CHECK(literal_part("/usr/*/lib/x*") == "/usr");
    CHECK(literal_part("/*") == "/");
    CHECK(literal_part("/dev/nvidia[0-9]") == "/dev");
}

}  // namespace
}  // namespace gpr

TEST_CASE("profiles stand by until one of them is used") {
    gpr::PathRules rules({{"/etc/OpenCL", "", false, "opencl"},
                          {"/usr/lib/libOpenCL*", "", true, "opencl"},
                          {"/usr/lib/*", "", true, "opencl"},
                          {"/usr/lib/libc*", "", true, "cuda"},
                          {"/dev/nvidia*", "", false, "cuda"},
                          {"/dev/kfd", "", false, "hip"},
                          {"/srv", "", false}});
    auto verdict = [&](const char* path) {
        const gpr::PathVerdict v = rules.owner_of(path);
        return std::tuple(v.owner, v.rule, v.standby);
    };
    rules.keep_standby({"opencl", "cuda"});
    CHECK(verdict("/dev/kfd") == std::tuple(gpr::PathOwner::home, size_t{0}, false));
    CHECK(verdict("/srv/x") == std::tuple(gpr::PathOwner::acceptor, size_t{6}, false));
    CHECK(verdict("/etc/OpenCL/vendors") == std::tuple(gpr::PathOwner::acceptor, size_t{0}, true));
    CHECK(verdict("/usr/lib/libOpenCL.so.1") ==
          std::tuple(gpr::PathOwner::whoever, size_t{1}, true));
    // Anything that is missing says nothing about a profile.
    CHECK(verdict("/usr/lib/libz.so") == std::tuple(gpr::PathOwner::home, size_t{0}, false));
    CHECK(rules.standby_rule("cuda") == 3);
    CHECK_FALSE(rules.standby_rule("hip"));
    CHECK_FALSE(rules.standby_rule(""));

    rules.use(1);
    CHECK(verdict("/etc/OpenCL/vendors") == std::tuple(gpr::PathOwner::acceptor, size_t{0}, false));
    CHECK(verdict("/usr/lib/libz.so") == std::tuple(gpr::PathOwner::whoever, size_t{2}, false));
    CHECK(verdict("/usr/lib/libcudart.so") ==
          std::tuple(gpr::PathOwner::whoever, size_t{2}, false));
    CHECK(verdict("/dev/nvidia0") == std::tuple(gpr::PathOwner::home, size_t{0}, false));
    CHECK(verdict("/srv") == std::tuple(gpr::PathOwner::acceptor, size_t{6}, false));
    CHECK_FALSE(rules.standby_rule("cuda"));
    rules.keep_standby({});
    CHECK_FALSE(rules.empty());

    gpr::PathRules only({{"/dev/kvm", "", false, "kvm"}});
    CHECK_FALSE(only.empty());
    only.keep_standby({"cuda"});
    CHECK(only.empty());
}
