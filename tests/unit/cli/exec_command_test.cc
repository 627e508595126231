#include "tools/exec_command.h"

#include <doctest/doctest.h>

#include <map>

#include "tests/unit/temporary_folder.h"
#include "tools/acceptor_command.h"
#include "tools/commands.h"

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

namespace {

// No real configuration file can be found through these.
Variables closed_world(Variables more = {}) {
    more.insert({"XDG_CONFIG_HOME", "/nonexistent"});
    more.insert({"PATH", "/usr/bin:/bin"});
    return more;
}

gpr::Environment environment_of(const Variables& variables) {
    return [&variables](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
    };
}

tl::expected<gpr::ExecOptions, gpr::ExecRefusal> options(const Words& words,
                                                         const Variables& more = {}) {
    const Variables variables = closed_world(more);
    return gpr::make_exec_options(gpr::parse_command(gpr::exec_spec(), words).value(),
                                  environment_of(variables));
}

int refusal(const Words& words, const Variables& more = {}) {
    const auto made = options(words, more);
    return made ? 0 : made.error().status;
}

std::string complaint(const Words& words, const Variables& more = {}) {
    const auto made = options(words, more);
    return made ? "" : made.error().error.message();
}

}  // namespace

TEST_CASE("a first try") {
    const auto made = options({"--acceptor", "local", "--stats", "ls", "--color", "-l"});
    REQUIRE(made);
    CHECK(made->acceptors == std::vector{gpr::AcceptorAddress{"1", "local"}});
    gpr::SplitRule automatic{gpr::SplitKind::all, "", "1"};
    automatic.rests = true;
    CHECK(made->rules.front() == automatic);
    CHECK(made->rules.back().standby);
    CHECK(made->program == "ls");
    CHECK(made->program_path == "/usr/bin/ls");
    CHECK(made->args == Words{"--color", "-l"});
    CHECK(made->stats.enabled);
    CHECK(made->stats.file.empty());
    CHECK(made->record_file.empty());
    CHECK_FALSE(made->plain_allowed);
}

TEST_CASE("a session can be recorded") {
    const auto made = options({"--acceptor", "local", "--record=/tmp/record", "ls"});
    REQUIRE(made);
    CHECK(made->record_file == "/tmp/record");
}

TEST_CASE("no acceptor anywhere is an error, never local") {
    CHECK(refusal({"ls"}) == 125);
    CHECK(complaint({"ls"}).find("no acceptor is named; add '--acceptor HOST:PORT'") == 0);
    CHECK(refusal({"ls"}, {{"GPR_ACCEPTOR", "local"}}) == 0);
}

TEST_CASE("an acceptor that no rule is for is refused") {
    const Words two = {"--acceptor", "a=local", "--acceptor", "b=local", "--split"};
    const auto with = [&](const std::string& rule, const std::string& another = "home:libz*") {
        Words words = two;
        words.insert(words.end(), {rule, "--split", another, "ls"});
        return complaint(words);
    };
    CHECK(with("all@a") ==
          "no split rule is for acceptor 'b'; add one, as in --split 'lib:libx*@b', or leave the "
          "acceptor out");
    CHECK(with("all@b").find("no split rule is for acceptor 'a'") == 0);
    CHECK(with("all@b", "lib:libx*@a").empty());
    CHECK(with("all", "profile:kvm@b").empty());
    CHECK(with("all@a", "sock:inet@b").empty());
}

TEST_CASE("an acceptor elsewhere wants a token") {
    CHECK(refusal({"--acceptor", "b:7711", "ls"}) == 125);
    CHECK(complaint({"--acceptor", "b:7711", "ls"}).find("gpr token new") != std::string::npos);
    CHECK(refusal({"--acceptor", "b:7711", "--token-file", "t", "ls"}) == 0);
    CHECK(refusal({"--acceptor", "b:7711", "ls"}, {{"GPR_TOKEN_FILE", "t"}}) == 0);
}

TEST_CASE("exit statuses before anything starts") {
    CHECK(refusal({"--acceptor", "local"}) == 125);
    CHECK(refusal({"--acceptor", "local", "no-such-program"}) == 127);
    CHECK(refusal({"--acceptor", "local", "/etc/passwd"}) == 126);
    CHECK(refusal({"--acceptor", "local", "--split", "fn:x", "ls"}) == 125);
    CHECK(refusal({"--acceptor", "local", "--log-level", "loud", "ls"}) == 125);
    CHECK(refusal({"--acceptor", "local", "--config", "/nonexistent", "ls"}) == 125);
    CHECK(refusal({"--acceptor", "local", "ls"}, {{"GPR_PLAIN", "perhaps"}}) == 125);
}

TEST_CASE("file, environment and flag, in rising rank") {
    const gpr::TemporaryFolder folder;
    const std::string config =
        folder.write("config.toml",
                     "acceptor = \"file:1\"\nlog = \"file.log\"\ntoken-file = \"t\"\n"
                     "stats = \"s.json\"\nlisten = \"0.0.0.0:1\"\n");
    const auto made = options({"--config", config, "--acceptor", "flag:3", "ls"},
                              {{"GPR_ACCEPTOR", "environment:2"}, {"GPR_LOG", "/environment.log"}});
    REQUIRE(made);
    CHECK(made->config_file == config);
    CHECK(made->acceptors == std::vector{gpr::AcceptorAddress{"1", "flag:3"}});
    CHECK(made->log.file == "/environment.log");
    CHECK(made->token_file == folder.path() + "/t");
    CHECK(made->stats.file == folder.path() + "/s.json");

    const auto no_stats = options({"--stats=no", "ls"}, {{"GPR_CONFIG", config}});
    REQUIRE(no_stats);
    CHECK_FALSE(no_stats->stats.enabled);
    CHECK(no_stats->acceptors.front().address == "file:1");
}

TEST_CASE("every flag has an environment variable and a key") {
    for (const gpr::CommandSpec* spec : {&gpr::exec_spec(), &gpr::acceptor_spec()}) {
        for (const gpr::Setting& setting : spec->settings) {
            const std::string value =
                setting.kind == gpr::SettingKind::toggle ? "true" : "some-value";
            const Variables variables = {{gpr::environment_name(setting.name), value}};
            const auto answers =
                gpr::answers_from_environment(spec->settings, environment_of(variables));
            REQUIRE(answers);
            CHECK(answers->at(std::string(setting.name)) == Words{value});
        }
    }
}

TEST_CASE("the widest network that an acceptor allows counts, and ports are of own ones") {
    const Variables variables = closed_world();
    const auto made = [&](Words words) {
        words.insert(words.end(), {"--listen", "h:1", "--token-file", "t"});
        return gpr::make_acceptor_options(gpr::parse_command(gpr::acceptor_spec(), words).value(),
                                          environment_of(variables));
    };
    CHECK_FALSE(made({})->network.sockets);
    const auto own = made({"--allow-network", "--session-ports", "20000-20639"});
    REQUIRE(own);
    CHECK(own->network.sockets);
    CHECK_FALSE(own->network.is_of_host());
    CHECK(own->network.ports_each == 10);
    const auto host = made({"--allow-network", "--allow-host-network"});
    CHECK((host->network.sockets && host->network.is_of_host() && !host->network.raw));
    const auto raw = made({"--allow-raw-network"});
    CHECK((raw->network.sockets && raw->network.is_of_host() && raw->network.raw));
    CHECK_FALSE(made({"--session-ports", "20000-20639"}));
    CHECK_FALSE(made({"--allow-host-network", "--session-ports", "20000-20639"}));
    CHECK_FALSE(made({"--allow-network", "--session-ports", "20000-20100"}));
    CHECK_FALSE(made({"--allow-network", "--session-ports", "80-20000"}));
}

TEST_CASE("an acceptor needs an address and a token") {
    const Variables variables = closed_world();
    const auto make = [&](const Words& words) {
        return gpr::make_acceptor_options(gpr::parse_command(gpr::acceptor_spec(), words).value(),
                                          environment_of(variables));
    };
    const auto made = make({"--listen", "0.0.0.0:7711", "--listen", "unix:/run/gpr", "--token-file",
                            "t", "--max-sessions", "3"});
    REQUIRE(made);
    CHECK(made->listen == Words{"0.0.0.0:7711", "unix:/run/gpr"});
    CHECK(made->token_file == "t");
    CHECK(made->max_sessions == 3);
    CHECK_FALSE(make({"--listen", "0.0.0.0:7711"}));
    CHECK_FALSE(make({"--token-file", "t"}));
    CHECK_FALSE(make({"--listen", "h:port", "--token-file", "t"}));
    CHECK_FALSE(make({"--listen", "h:1", "--token-file", "t", "--max-sessions", "0"}));
    CHECK_FALSE(make({"--listen", "h:1", "--token-file", "t", "--max-sessions", "2x"}));
    CHECK_FALSE(made->limits.any());
    const auto limited =
        make({"--listen", "h:1", "--token-file", "t", "--session-memory", "8G", "--session-cpus",
              "1.5", "--session-pids", "100", "--session-device-memory", "512M"});
    REQUIRE(limited);
    CHECK(limited->limits.memory_bytes == 8ULL << 30);
    CHECK(limited->limits.milli_cpus == 1500);
    CHECK(limited->limits.tasks == 100);
    CHECK(limited->limits.device_memory_bytes == 512 << 20);
    CHECK_FALSE(make({"--listen", "h:1", "--token-file", "t", "--session-memory", "much"}));
}
