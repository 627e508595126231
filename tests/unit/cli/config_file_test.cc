#include "tools/config_file.h"

#include <doctest/doctest.h>

#include <fstream>

#include "tests/unit/temporary_folder.h"
#include "tools/commands.h"
#include "tools/exec_command.h"

using Words = std::vector<std::string>;

namespace {

gpr::Result<gpr::Answers> parse(std::string_view text) {
    return gpr::answers_from_toml(text, "/etc/gpr/config.toml", gpr::exec_spec().settings);
}

std::string complaint(std::string_view text) {
    const auto answers = parse(text);
    return answers ? "" : answers.error().message();
}

}  // namespace

TEST_CASE("every kind of setting has a spelling in the file") {
    const auto answers = parse(R"(
acceptor = ["gpu=10.0.0.7", "b:7711"]
split = "lib:libcrypto*"
token-file = "/etc/gpr/token"
plain = true
stats = true
)");
    REQUIRE(answers);
    CHECK(answers->at("acceptor") == Words{"gpu=10.0.0.7", "b:7711"});
    CHECK(answers->at("split") == Words{"lib:libcrypto*"});
    CHECK(answers->at("token-file") == Words{"/etc/gpr/token"});
    CHECK(answers->at("plain") == Words{"true"});
    CHECK(answers->at("stats") == Words{"true"});
}

TEST_CASE("acceptors may be a table of names") {
    const auto answers = parse("[acceptor]\ngpu = \"10.0.0.7:7711\"\nnear = \"unix:/run/gpr\"\n");
    REQUIRE(answers);
    CHECK(answers->at("acceptor") == Words{"gpu=10.0.0.7:7711", "near=unix:/run/gpr"});
}

TEST_CASE("relative paths start at the file's folder") {
    const auto answers = parse("token-file = \"token\"\nstats = \"out.json\"\n");
    REQUIRE(answers);
    CHECK(answers->at("token-file") == Words{"/etc/gpr/token"});
    CHECK(answers->at("stats") == Words{"/etc/gpr/out.json"});
}

TEST_CASE("mistakes come with file and line") {
    CHECK(complaint("plain = true\ntokenfile = \"x\"\n") ==
          "/etc/gpr/config.toml:2: no setting is called 'tokenfile'; did you mean 'token-file'?");
    CHECK(complaint("plain = \"maybe\"\n").find(":1: 'plain' must be true or false") !=
          std::string::npos);
    CHECK(complaint("log = [1, 2]\n").find(":1: 'log' must be text") != std::string::npos);
    CHECK(complaint("= 3\n").find("/etc/gpr/config.toml:1: ") == 0);
}

TEST_CASE("text without quotes is told as such") {
    for (const char* text : {"token-file = token\n", "plain = true\nsplit = [all]\n",
                             "acceptor = 10.0.0.7:7711\n", "stats = /tmp/s # x\n"}) {
        CAPTURE(text);
        CHECK(complaint(text).find(": strings need quotes: \"") != std::string::npos);
    }
    CHECK(complaint("token-file = token\n") ==
          "/etc/gpr/config.toml:1: strings need quotes: \"token\"");
    CHECK(complaint("plain = \n").find("strings need quotes") == std::string::npos);
}

TEST_CASE("the usual places, in order") {
    const gpr::TemporaryFolder folder;
    const std::string home = folder.path();
    const auto environment = [&](const char* name) {
        return std::string(name) == "HOME" ? home.c_str() : nullptr;
    };
    CHECK(gpr::default_config_paths(environment) ==
          Words{home + "/.config/gpr/config.toml", "/etc/gpr/config.toml"});
    folder.write(".config/gpr/config.toml", "plain = true\n");
    const auto config = gpr::read_config("", environment, gpr::exec_spec().settings);
    REQUIRE(config);
    CHECK(config->path == home + "/.config/gpr/config.toml");
    CHECK(config->answers.at("plain") == Words{"true"});
}

TEST_CASE("a named file must exist") {
    const auto nowhere = [](const char*) -> const char* { return nullptr; };
    const auto config = gpr::read_config("/nonexistent/c.toml", nowhere, gpr::exec_spec().settings);
    REQUIRE_FALSE(config);
    CHECK(config.error().message().find("/nonexistent/c.toml") != std::string::npos);
}
