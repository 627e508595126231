#include "monitor/rules/call_rules.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "monitor/rules/exec_options.h"
#include "monitor/rules/rule_use.h"
#include "monitor/rules/split_policy.h"

namespace gpr {
namespace {

const std::vector<SplitRule> rules = {{SplitKind::lib, "libz*", "1"},
                                      {SplitKind::sock, "inet", "1"},
                                      {SplitKind::path, "/opt", "1"},
                                      {SplitKind::sys, "uname", "1"}};

TEST_CASE("rules of sockets are for both calls that make them") {
    CHECK(remote_calls_of(rules) ==
          std::vector<RemoteCall>{{SYS_socket, AF_INET}, {SYS_socketpair, AF_INET}, {SYS_uname}});
    CHECK(rules_of_calls(rules) == std::vector<size_t>{1, 1, 3});
    const auto calls = remote_calls_of(rules);
    CHECK(find_remote_call(calls, SYS_socketpair, AF_INET) == 1);
    CHECK(find_remote_call(calls, SYS_uname, 7) == 2);
    CHECK_FALSE(find_remote_call(calls, SYS_socket, AF_UNIX));
}

TEST_CASE("rules of calls say nothing about code") {
    CHECK_FALSE(SplitPolicy({{SplitKind::sock, "inet", "1"}, {SplitKind::all, "", "1"}}).mixed());
    CHECK_FALSE(SplitPolicy({{SplitKind::sys, "uname", "1"}, {SplitKind::all, "", "1"}}).mixed());
    CHECK_FALSE(is_about_files(SplitKind::sock));
    CHECK_FALSE(is_about_code(SplitKind::sys));
}

TEST_CASE("rules whose calls nobody made are named") {
    RuleUse use(rules);
    CHECK(use.idle() ==
          std::vector<std::string>{"lib:libz*", "sock:inet", "path:/opt", "sys:uname"});
    use.note_call(0, 1);
    CHECK(use.idle() == std::vector<std::string>{"lib:libz*", "path:/opt", "sys:uname"});
    use.note_call(0, 2);
    use.note_call(0, 99);  // a peer may say anything
    CHECK(use.idle() == std::vector<std::string>{"lib:libz*", "path:/opt"});
}

}  // namespace
}  // namespace gpr
