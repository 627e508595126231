#include "tools/settings.h"

#include <doctest/doctest.h>

#include <array>

using gpr::Answers;
using gpr::Setting;
using gpr::SettingKind;
using Words = std::vector<std::string>;

namespace {

constexpr std::array settings = {
    Setting{"token-file", SettingKind::text, "FILE", ""},
    Setting{"split", SettingKind::list, "RULE", ""},
    Setting{"plain", SettingKind::toggle, "", ""},
};

gpr::Environment environment_of(const std::map<std::string, std::string>& variables) {
    return [&variables](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
    };
}

}  // namespace

TEST_CASE("environment names") {
    CHECK(gpr::environment_name("token-file") == "GPR_TOKEN_FILE");
    CHECK(gpr::environment_name("stats") == "GPR_STATS");
}

TEST_CASE("the environment is read by name") {
    const std::map<std::string, std::string> variables = {{"GPR_TOKEN_FILE", "/t"},
                                                          {"GPR_SPLIT", "all,lib:a b,"},
                                                          {"GPR_PLAIN", "yes"},
                                                          {"GPR_OTHER", "x"}};
    const auto answers = gpr::answers_from_environment(settings, environment_of(variables));
    REQUIRE(answers);
    CHECK(answers->at("token-file") == Words{"/t"});
    CHECK(answers->at("split") == Words{"all", "lib:a b"});
    CHECK(answers->size() == 3);
}

TEST_CASE("an empty variable is an unset one, a bad toggle an error") {
    const std::map<std::string, std::string> empty = {{"GPR_TOKEN_FILE", ""}};
    CHECK(gpr::answers_from_environment(settings, environment_of(empty))->empty());
    const std::map<std::string, std::string> bad = {{"GPR_PLAIN", "perhaps"}};
    CHECK_FALSE(gpr::answers_from_environment(settings, environment_of(bad)));
}

TEST_CASE("flag beats environment beats file, setting by setting") {
    const Answers flags = {{"split", {"lib:a"}}};
    const Answers variables = {{"split", {"all"}}, {"plain", {"no"}}};
    const Answers file = {{"split", {"all", "lib:z"}}, {"plain", {"true"}}, {"token-file", {"/f"}}};
    const gpr::Settings merged({flags, variables, file});
    CHECK(merged.list("split") == Words{"lib:a"});
    CHECK_FALSE(merged.toggle("plain"));
    CHECK(merged.text("token-file") == "/f");
    CHECK(merged.text("log", "default") == "default");
    CHECK_FALSE(merged.has("log"));
}
