#include "tools/split_rules.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "acceptor/box/exports.h"
#include "monitor/rules/path_rules.h"
#include "tests/unit/temporary_folder.h"

using gpr::AcceptorAddress;
using gpr::SplitKind;
using gpr::SplitRule;

namespace {

const std::vector<AcceptorAddress> two = {{"gpu", "10.0.0.7:7711"}, {"2", "local"}};

SplitRule rule(std::string_view text) { return gpr::parse_split_rule(text, two).value(); }

// As it is in a list of rules, which know their acceptor's number.
SplitRule at(SplitRule rule, uint8_t node) {
    rule.node_id = node;
    return rule;
}

std::string complaint(std::string_view text) {
    const auto parsed = gpr::parse_split_rule(text, two);
    return parsed ? "" : parsed.error().message();
}

gpr::Result<std::vector<SplitRule>> rules(const std::vector<std::string>& texts,
                                          const std::vector<std::string>& folders = {}) {
    return gpr::parse_split_rules(texts, two, gpr::Profiles(folders));
}

std::string complaint_of(const std::vector<std::string>& texts, const std::string& folder) {
    const auto parsed = rules(texts, {folder});
    return parsed ? "" : parsed.error().message();
}

bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("acceptors have names or numbers") {
    const auto acceptors =
        gpr::parse_acceptors({"gpu=10.0.0.7:7711", "[::1]:7711", "unix:/run/a=b", "local"}, false);
    REQUIRE(acceptors);
    CHECK(acceptors->at(0) == AcceptorAddress{"gpu", "10.0.0.7:7711"});
    CHECK(acceptors->at(1) == AcceptorAddress{"2", "[::1]:7711"});
    CHECK(acceptors->at(2) == AcceptorAddress{"3", "unix:/run/a=b"});
    CHECK(acceptors->at(3).is_local());
}

TEST_CASE("acceptors that cannot be are refused") {
    CHECK_FALSE(gpr::parse_acceptors({"host:99999"}, false));
    CHECK_FALSE(gpr::parse_acceptors({"a=local", "a=local"}, false));
    CHECK_FALSE(gpr::parse_acceptors({"2=local", "local"}, false));
    CHECK_FALSE(gpr::parse_acceptors({""}, false));
    const std::vector<std::string> fifteen = {
        "a=local", "b=local", "c=local", "d=local", "e=local", "f=local", "g=local", "h=local",
        "i=local", "j=local", "k=local", "l=local", "m=local", "n=local", "o=local"};
    CHECK(gpr::parse_acceptors(fifteen, false));
    auto sixteen = fifteen;
    sixteen.emplace_back("p=local");
    CHECK_FALSE(gpr::parse_acceptors(sixteen, false));
    CHECK_FALSE(gpr::parse_acceptors({"tcp://host:7711"}, false));
    CHECK(gpr::parse_acceptors({"tcp://host:7711"}, true));
}

TEST_CASE("rules") {
    CHECK(rule("all") == SplitRule{SplitKind::all, "", "gpu"});
    CHECK(rule("all@2") == SplitRule{SplitKind::all, "", "2"});
    CHECK(rule("lib:libcrypto*") == SplitRule{SplitKind::lib, "libcrypto*", "gpu"});
    CHECK(rule("lib:/opt/*/libz.so@2") == SplitRule{SplitKind::lib, "/opt/*/libz.so", "2"});
    CHECK(rule("home:libc.so.6") == SplitRule{SplitKind::home, "libc.so.6", ""});
}

TEST_CASE("an @ of the library's own name stays") {
    CHECK(rule("lib:libfoo@1.so") == SplitRule{SplitKind::lib, "libfoo@1.so", "gpu"});
    CHECK(rule("lib:libfoo@1.so@2") == SplitRule{SplitKind::lib, "libfoo@1.so", "2"});
    CHECK(rule("lib:a@*") == SplitRule{SplitKind::lib, "a@*", "gpu"});
}

TEST_CASE("functions") {
    SplitRule deflate{SplitKind::fn, "libz.so*", "gpu"};
    deflate.symbols = "deflate*";
    CHECK(rule("fn:libz.so*!deflate*") == deflate);
    deflate.node = "2";
    CHECK(rule("fn:libz.so*!deflate*@2") == deflate);
    const SplitRule sets = rule("fn:/opt/[!a]/lib[^!]x\\!.so![!_]*");
    CHECK(sets.pattern == "/opt/[!a]/lib[^!]x\\!.so");
    CHECK(sets.symbols == "[!_]*");
    for (const char* part : {"fn:", "fn:libz.so*", "fn:libz.so*!", "fn:!deflate", "fn:!", "fn"}) {
        CAPTURE(part);
        CHECK_FALSE(complaint(part).empty());
    }
    CHECK(has(complaint("fn:libz.so*"), "needs a library and a function, as in fn:libz.so*!"));
    CHECK(has(complaint("fn:!deflate"), "needs a library and a function"));
    CHECK(has(complaint("fn:lib[a!b"), "'lib[a' is not a glob"));
    CHECK(has(complaint("fn:libz.so!def[l"), "'def[l' is not a glob"));
    CHECK(has(complaint("fn:libz.so!/deflate"), "no function is called '/deflate'"));
    CHECK(has(complaint("fn:libc.so.6!memcpy@GLIBC_2.14"), "no acceptor is called 'GLIBC_2.14'"));
}

TEST_CASE("rules of sockets and system calls") {
    CHECK(rule("sock:INET6") == SplitRule{SplitKind::sock, "inet6", "gpu"});
    CHECK(rule("sock:local@2") == SplitRule{SplitKind::sock, "unix", "2"});
    CHECK(rule("sys:uname@2") == SplitRule{SplitKind::sys, "uname", "2"});
    CHECK(has(complaint("sock:inte"), "no family of sockets is called 'inte'; did you mean"));
    CHECK(has(complaint("sock:"), "no family of sockets is called ''"));
    CHECK(has(complaint("sys:io_uring_set"), "did you mean 'io_uring_setup'?"));
    CHECK(has(complaint("sys:brk"), "brk cannot be given to the acceptor: what it changes must"));
    // They say nothing about code, so the whole program is there.
    const auto parsed = rules({"sock:inet", "sys:uname"});
    REQUIRE(parsed);
    CHECK(parsed->size() == 3);
    CHECK(parsed->back().kind == SplitKind::all);
}

TEST_CASE("rules that are not understood say why") {
    for (const char* unknown : {"library:x", "lib", "path", "all:x", ""}) {
        CAPTURE(unknown);
        CHECK(has(complaint(unknown), "is not understood; use auto, all, lib:GLOB, fn:"));
    }
    CHECK(complaint("lib:").find("needs a pattern") != std::string::npos);
    CHECK(complaint("all@cpu").find("no acceptor is called 'cpu'; did you mean 'gpu'?") !=
          std::string::npos);
    CHECK(complaint("home:x@gpu").find("home is the initiator") != std::string::npos);
}

TEST_CASE("chaos") {
    CHECK(rule("chaos:7") == SplitRule{SplitKind::chaos, "7", "gpu", 7});
    CHECK(rule("chaos:7@2") == SplitRule{SplitKind::chaos, "7", "2", 7});
    CHECK(rule("chaos").seed != 0);
    CHECK(rule("chaos").pattern.empty());
    for (const char* bad : {"chaos:", "chaos:0", "chaos:x", "chaos:7x", "chaos:-1"}) {
        CHECK(complaint(bad).find("a seed is a number from 1") != std::string::npos);
    }
    const auto mixture = rules({"chaos:7", "all"});
    REQUIRE(!mixture);
    CHECK(has(mixture.error().message(), "leave out the other rules"));
    CHECK(rules({"chaos:7", "path:/opt"}));
}

TEST_CASE("no rule means all, once that is of use, and that every profile stands by") {
    const auto none = rules({});
    REQUIRE(none);
    SplitRule automatic{SplitKind::all, "", "gpu"};
    automatic.rests = true;
    CHECK(none->front() == automatic);
    CHECK(*none == rules({"auto"}).value());
    std::vector<std::string> standing_by;
    for (size_t i = 1; i < none->size(); i++) {
        const SplitRule& rule = none->at(i);
        CAPTURE(rule.pattern);
        CHECK(rule.standby);
        CHECK(gpr::is_about_files(rule.kind));
        if (standing_by.empty() || standing_by.back() != rule.profile) {
            standing_by.push_back(rule.profile);
        }
    }
    CHECK(standing_by == gpr::Profiles({}).names());
    const auto second = rules({"auto@2"});
    REQUIRE(second);
    for (const SplitRule& rule : *second) CHECK(rule.node == "2");
}

TEST_CASE("no rule about code means all") {
    const SplitRule all{SplitKind::all, "", "gpu"};
    CHECK(rules({"dev:/dev/kvm@2"}).value() ==
          std::vector{at({SplitKind::dev, "/dev/kvm", "2"}, 2), all});
}

TEST_CASE("rules about files") {
    CHECK(rule("path:/etc/OpenCL/") == SplitRule{SplitKind::path, "/etc/OpenCL", "gpu"});
    CHECK(rule("path:/opt/*.d@2") == SplitRule{SplitKind::path, "/opt/*.d", "2"});
    CHECK(rule("path:/etc/OpenCL=/srv/cl") ==
          SplitRule{SplitKind::path, "/etc/OpenCL", "gpu", 0, "/srv/cl"});
    CHECK(rule("missing:/usr/lib/*") == SplitRule{SplitKind::missing, "/usr/lib/*", "gpu"});
    CHECK(rule("dev:/dev/nvidia*") == SplitRule{SplitKind::dev, "/dev/nvidia*", "gpu"});
    CHECK(has(complaint("path:etc"), "'etc' is not an absolute path"));
    CHECK(has(complaint("missing:*"), "'*' is not an absolute path"));
    CHECK(has(complaint("path:/etc=srv"), "'srv' is not an absolute path"));
    CHECK(has(complaint("path:/etc/*=/srv"), "needs one place, without wildcards"));
    CHECK(has(complaint("dev:/sys/kvm"), "devices are below /dev; use path:/sys/kvm"));
}

TEST_CASE("a bad glob is no glob that matches nothing") {
    for (const char* bad : {"lib:[a-", "path:/opt/[", "missing:/usr/lib\\", "dev:/dev/[!x"}) {
        CAPTURE(bad);
        CHECK(has(complaint(bad), "is not a glob"));
    }
    for (const char* good : {"lib:[a-z]*", "path:/opt/[]x]", "path:/opt/\\[x", "lib:[!a]b"}) {
        CAPTURE(good);
        CHECK(complaint(good).empty());
    }
}

TEST_CASE("every shipped profile is made of rules") {
    const std::vector<std::string> names = gpr::Profiles({}).names();
    CHECK(names == std::vector<std::string>{"cuda", "hip", "kvm", "opencl", "vulkan"});
    for (const std::string& name : names) {
        CAPTURE(name);
        CHECK_FALSE(gpr::Profiles({}).find(name)->description.empty());
        const auto parsed = rules({"profile:" + name + "@2"});
        REQUIRE(parsed);
        for (const SplitRule& part : *parsed) {
            const bool added = part.kind == SplitKind::all;
            CHECK(part.profile == (added ? "" : name));
            CHECK(part.node == (added ? "gpu" : "2"));
        }
    }
    CHECK(rules({"profile:kvm"})->front() ==
          SplitRule{SplitKind::dev, "/dev/kvm", "gpu", 0, "", "kvm"});
}

TEST_CASE("acceptors show what shipped profiles ask for") {
    const std::vector<std::string> exports = gpr::default_exports();
    for (const std::string& name : gpr::Profiles({}).names()) {
        const auto parsed = rules({"profile:" + name});
        for (const SplitRule& part : parsed.value()) {
            if (!gpr::is_about_files(part.kind)) continue;
            CAPTURE(part.pattern);
            // One that matches.
            std::string path = part.pattern;
            std::erase(path, '*');
            CHECK(std::any_of(exports.begin(), exports.end(),
                              [&](const std::string& shown) { return gpr::covers(shown, path); }));
        }
    }
}

TEST_CASE("a profile comes in its place, from the first folder that has it") {
    const gpr::TemporaryFolder mine;
    const gpr::TemporaryFolder theirs;
    theirs.write("kvm.toml", "split = ['dev:/dev/theirs']");
    theirs.write("box.toml", "split = ['home:libui*', 'lib:libbox*', 'profile:kvm']");
    mine.write("kvm.toml", "description = 'mine'\nsplit = ['dev:/dev/mine']");
    const auto parsed = rules({"lib:a", "profile:box@2", "lib:b"}, {mine.path(), theirs.path()});
    REQUIRE(parsed);
    CHECK(*parsed == std::vector{SplitRule{SplitKind::lib, "a", "gpu"},
                                 at({SplitKind::home, "libui*", "", 0, "", "box"}, 0),
                                 at({SplitKind::lib, "libbox*", "2", 0, "", "box"}, 2),
                                 at({SplitKind::dev, "/dev/mine", "2", 0, "", "box"}, 2),
                                 SplitRule{SplitKind::lib, "b", "gpu"}});
}

TEST_CASE("profiles that cannot be say why") {
    const gpr::TemporaryFolder folder;
    const std::string file = folder.write("round.toml", "split = ['profile:turn']");
    folder.write("turn.toml", "split = ['profile:round']");
    folder.write("typo.toml", "split = ['lib:a', 'dev:kvm']");
    folder.write("empty.toml", "description = 'nothing'");
    folder.write("key.toml", "splits = ['all']");
    folder.write("text.toml", "split = [");
    const auto why = [&](const std::string& name) {
        return complaint_of({"profile:" + name}, folder.path());
    };
    CHECK(has(why("cdua"),
              "no profile is called 'cdua'; did you mean 'cuda'? there are cuda, "
              "empty, hip, key, kvm, opencl, round, text, turn, typo, vulkan"));
    CHECK(has(why("../round"), "no profile is called '../round'"));
    CHECK(has(why(""), "no profile is called ''"));
    CHECK(has(why("cuda@cpu"), "no acceptor is called 'cpu'"));
    CHECK(has(why("round"), "profile 'round' is part of itself"));
    CHECK(has(why("round"), file));
    CHECK(has(why("typo"), "'kvm' is not an absolute path"));
    CHECK(has(why("empty"), "a profile needs rules"));
    CHECK(has(why("key"), "did you mean 'split'?"));
    CHECK(has(why("text"), "text.toml:1: "));
}

TEST_CASE("profiles are looked for beside the configuration") {
    const auto folders = gpr::profile_folders([](const char* name) -> const char* {
        return std::string_view(name) == "XDG_CONFIG_HOME" ? "/somewhere" : nullptr;
    });
    REQUIRE(folders.size() == 3);
    CHECK(folders[0] == "/somewhere/gpr/profiles");
    CHECK(folders[1] == "/etc/gpr/profiles");
    CHECK(has(folders[2], "/gpr/profiles"));
}
