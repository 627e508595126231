#include "tools/command_line.h"

#include <doctest/doctest.h>

#include "tools/commands.h"
#include "tools/exec_command.h"

using gpr::cut_program;
using gpr::parse_command;
using Words = std::vector<std::string>;

namespace {

gpr::ProgramCut cut(const Words& words) { return cut_program(gpr::exec_spec().settings, words); }

std::string complaint(const Words& words) {
    const auto parsed = parse_command(gpr::exec_spec(), words);
    return parsed ? "" : parsed.error().message();
}

}  // namespace

TEST_CASE("what follows the program is the program's") {
    const auto parsed = parse_command(gpr::exec_spec(), {"--acceptor", "local", "ls", "--color"});
    REQUIRE(parsed);
    CHECK(parsed->program == Words{"ls", "--color"});
    CHECK(parsed->flags.at("acceptor") == Words{"local"});
}

TEST_CASE("the program's own --stats, --help and -- are left alone") {
    const auto parsed = parse_command(
        gpr::exec_spec(), {"--stats", "git", "--stats=x", "--help", "--", "--acceptor", "z", ""});
    REQUIRE(parsed);
    CHECK_FALSE(parsed->wants_help);
    CHECK(parsed->flags.at("stats") == Words{"true"});
    CHECK_FALSE(parsed->flags.contains("acceptor"));
    CHECK(parsed->program == Words{"git", "--stats=x", "--help", "--", "--acceptor", "z", ""});
}

TEST_CASE("-- ends the options and is not part of the program") {
    CHECK(cut({"--stats", "--", "--odd", "--"}).program == Words{"--odd", "--"});
    CHECK(cut({"--", "--", "x"}).program == Words{"--", "x"});
    CHECK(cut({"--"}).program.empty());
}

TEST_CASE("a flag's value may look like anything") {
    CHECK(cut({"--log", "--", "ls"}).program == Words{"ls"});
    CHECK(cut({"--split", "lib:x*", "--log=ls", "ls"}).options ==
          Words{"--split", "lib:x*", "--log=ls"});
}

TEST_CASE("a dash and an empty word are programs") {
    CHECK(cut({"--plain", "-", "x"}).program == Words{"-", "x"});
    CHECK(cut({"", "x"}).program == Words{"", "x"});
}

TEST_CASE("lists gather every flag, single values take the last") {
    const auto parsed = parse_command(
        gpr::exec_spec(), {"--split", "all", "--split=lib:a", "--log", "a", "--log", "b", "true"});
    REQUIRE(parsed);
    CHECK(parsed->flags.at("split") == Words{"all", "lib:a"});
    CHECK(parsed->flags.at("log") == Words{"b"});
}

TEST_CASE("a short flag is another name of a long one") {
    for (const Words& words : {Words{"-n", "2", "ls", "-n", "3"}, Words{"-n2", "ls", "-n", "3"},
                               Words{"--device-count", "2", "ls", "-n", "3"}}) {
        const auto parsed = parse_command(gpr::exec_spec(), words);
        REQUIRE(parsed);
        CHECK(parsed->flags.at("device-count") == Words{"2"});
        CHECK(parsed->program == Words{"ls", "-n", "3"});
    }
    CHECK(gpr::help_text(gpr::exec_spec()).find("-n, --device-count COUNT") != std::string::npos);
}

TEST_CASE("--stats takes a value only behind an equals sign") {
    const auto parsed = parse_command(gpr::exec_spec(), {"--stats=out.json", "ls"});
    REQUIRE(parsed);
    CHECK(parsed->flags.at("stats") == Words{"out.json"});
}

TEST_CASE("mistakes name what was meant") {
    CHECK(complaint({"--acceptr", "local", "ls"}).find("did you mean --acceptor?") !=
          std::string::npos);
    CHECK(complaint({"--zzzzzzzz", "ls"}).find("gpr exec --help") != std::string::npos);
    CHECK(complaint({"--acceptor"}).find("--acceptor needs a value;") == 0);
    CHECK(complaint({"--log=", "ls"}).find("--log needs a value;") == 0);
    CHECK(complaint({"--plain=maybe", "ls"}).find("neither true nor false") != std::string::npos);
}

TEST_CASE("words that no command takes are refused") {
    const gpr::CommandSpec one_word{"health", "[ADDR]", "", {}, false, 1};
    CHECK(parse_command(one_word, {"host"})->words == Words{"host"});
    CHECK_FALSE(parse_command(one_word, {"host", "other"}));
}

TEST_CASE("help names every option") {
    const std::string help = gpr::help_text(gpr::exec_spec());
    for (const gpr::Setting& setting : gpr::exec_spec().settings) {
        CHECK(help.find("--" + std::string(setting.name)) != std::string::npos);
    }
    CHECK(parse_command(gpr::exec_spec(), {"--help"})->wants_help);
}
