// The built command itself, as a user meets it.
#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "base/kernel_features.h"
#include "tests/unit/temporary_folder.h"
#include "transport/endpoint.h"
#include "transport/handshake.h"
#include "transport/token.h"

namespace {

struct Outcome {
    int status;
    std::string output;  // stdout and stderr
};

Outcome gpr_command(const std::string& words) {
    // No setting of the one who runs the tests may leak in.
    const std::string line = "env -i PATH=/usr/bin:/bin XDG_CONFIG_HOME=/nonexistent " GPR_COMMAND
                             " " +
                             words + " 2>&1 </dev/null";
    FILE* pipe = popen(line.c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string output;
    std::array<char, 4096> chunk{};
    for (size_t got = 0; (got = fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) {
        output.append(chunk.data(), got);
    }
    return {WEXITSTATUS(pclose(pipe)), output};
}

bool is_one_line(const std::string& text) {
    return text.find('\n') == text.size() - 1 && text.find("gpr: ") == 0;
}

}  // namespace

TEST_CASE("version, help and unknown commands") {
    CHECK(gpr_command("--version").output.find("gpr 0.") == 0);
    CHECK(gpr_command("--help").status == 0);
    CHECK(gpr_command("").status == 2);
    const Outcome unknown = gpr_command("exce ls");
    CHECK(unknown.status == 2);
    CHECK(unknown.output == "gpr: there is no command 'exce'; did you mean 'exec'?\n");
    CHECK(gpr_command("help exec").output == gpr_command("exec --help").output);
    CHECK(gpr_command("run --help").output == gpr_command("exec --help").output);
    CHECK(gpr_command("help exce").output == unknown.output);
    for (const char* command :
         {"exec", "explain", "acceptor", "token", "health", "setup", "syscalls"}) {
        CAPTURE(command);
        const Outcome help = gpr_command(std::string(command) + " --help");
        CHECK(help.status == 0);
        CHECK(help.output.find("usage: gpr ") == 0);
    }
}

TEST_CASE("options for diagnosis are in a section of their own") {
    for (const auto& [command, option] :
         {std::pair{"exec", "--no-bpf"}, std::pair{"exec", "--record=FILE"},
          std::pair{"exec", "--no-gravity"}, std::pair{"acceptor", "--pretend-without NAME"}}) {
        CAPTURE(option);
        const std::string help = gpr_command(std::string("help ") + command).output;
        const size_t section = help.find("\noptions for diagnosis:\n");
        REQUIRE(section != std::string::npos);
        CHECK(help.find(option) > section);
        CHECK(help.find(option) != std::string::npos);
        CHECK(help.find("--config") < section);
    }
}

TEST_CASE("a variable that looks like ours and is not is told") {
    const auto with = [](const std::string& variables) {
        FILE* pipe =
            popen(("env -i " + variables + " " GPR_COMMAND " --version exec 2>&1; env -i " +
                   variables + " " GPR_COMMAND " syscalls 2>&1 >/dev/null")
                      .c_str(),
                  "r");
        REQUIRE(pipe != nullptr);
        std::string output;
        std::array<char, 4096> chunk{};
        while (fgets(chunk.data(), chunk.size(), pipe) != nullptr) output += chunk.data();
        pclose(pipe);
        return output.substr(output.find('\n') + 1);  // without the version
    };
    CHECK(with("GPR_ACCEPTOR=local GPR_CONFIG= OTHER=1").empty());
    CHECK(with("GPR_ACEPTOR=local") ==
          "gpr: the variable GPR_ACEPTOR is not one of gpr's and means "
          "nothing; did you mean GPR_ACCEPTOR?\n");
    CHECK(with("GPR_FOO=1").find("'gpr help exec' lists the options") != std::string::npos);
}

TEST_CASE("acceptors are known by their names in the configuration") {
    const gpr::TemporaryFolder folder;
    const std::string config = folder.write("c.toml", "[acceptor]\nb = \"unix:/nonexistent/b\"\n");
    const std::string token = folder.path() + "/token";
    REQUIRE(gpr_command("token new --file " + token).status == 0);
    const std::string options = " --config " + config + " --token-file " + token + " ";
    for (const std::string& words : {"exec --acceptor b" + options + "ls", "health" + options + "b",
                                     "devices" + options + "b"}) {
        CAPTURE(words);
        CHECK(gpr_command(words).output.find("/nonexistent/b") != std::string::npos);
    }
    CHECK(gpr_command("explain --config " + config + " --acceptor b --split all@b ls").status == 0);
}

TEST_CASE("a normal user is told that an acceptor is root's") {
    if (geteuid() != 0) return;  // as whom it is tried below
    const gpr::TemporaryFolder folder;
    const std::string command = "setpriv --reuid 65534 --clear-groups " GPR_COMMAND
                                " acceptor --listen unix:" +
                                folder.path() +
                                "/s --token-file /nonexistent 2>&1; status=$?; "
                                "setpriv --reuid 65534 --clear-groups " GPR_COMMAND
                                " exec --acceptor local ls 2>&1; exit $status";
    FILE* pipe = popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string output;
    std::array<char, 4096> chunk{};
    while (fgets(chunk.data(), chunk.size(), pipe) != nullptr) output += chunk.data();
    const int status = WEXITSTATUS(pclose(pipe));
    if (status == 126 || status == 127) return;  // the build folder is closed to that user
    CHECK(status == 125);
    CHECK(output.find("gpr: an acceptor is started by root") == 0);
    CHECK(output.find("gpr: a local acceptor is started by root") != std::string::npos);
}

TEST_CASE("errors of exec are one line and 125, 126 or 127") {
    for (const char* words : {"exec ls", "exec --acceptor local", "exec --bogus ls",
                              "exec --acceptor local --split fn:x ls", "exec --acceptor b:1 ls"}) {
        CAPTURE(words);
        const Outcome outcome = gpr_command(words);
        CHECK(outcome.status == 125);
        CHECK(is_one_line(outcome.output));
    }
    CHECK(gpr_command("exec --acceptor local /etc/passwd").status == 126);
    CHECK(gpr_command("exec --acceptor local no-such-program").status == 127);
}

TEST_CASE("token new prints what the other side can read") {
    const Outcome printed = gpr_command("token new --expires 1h");
    CHECK(printed.status == 0);
    const auto token = gpr::parse_token(printed.output.substr(0, printed.output.find('\n')));
    REQUIRE(token);
    CHECK(token->expires_at.has_value());

    const gpr::TemporaryFolder folder;
    const std::string file = folder.path() + "/token";
    REQUIRE(gpr_command("token new --file " + file).status == 0);
    REQUIRE(gpr_command("token new --file " + file).status == 0);
    const auto tokens = gpr::TokenFile::load(file);
    REQUIRE(tokens);
    CHECK(tokens->tokens().size() == 2);
    struct stat status {};
    REQUIRE(stat(file.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);

    const std::string open_to_others = folder.write("open", "");
    const Outcome refused = gpr_command("token new --file " + open_to_others);
    CHECK(refused.status == 1);
    CHECK(refused.output.find("is open to others (mode 0644); run 'chmod 600 ") !=
          std::string::npos);
    CHECK(std::filesystem::file_size(open_to_others) == 0);

    CHECK(gpr_command("token").status == 2);
    CHECK(gpr_command("token new --expires soon").status == 1);
    CHECK(gpr_command("token new --file /nonexistent/token").status == 1);
}

// An acceptor that greets one peer and says that it has `features`.
class GreetingAcceptor {
public:
    GreetingAcceptor(const std::string& socket, const std::string& tokens,
                     std::vector<std::string> features) {
        listeners_ = gpr::Listener::listen(gpr::parse_endpoint("unix:" + socket).value()).value();
        child_ = fork();
        REQUIRE(child_ != -1);
        if (child_ == 0) _exit(greet(listeners_.front(), tokens, std::move(features)));
    }
    GreetingAcceptor(const GreetingAcceptor&) = delete;
    GreetingAcceptor& operator=(const GreetingAcceptor&) = delete;
    ~GreetingAcceptor() {
        kill(child_, SIGKILL);
        waitpid(child_, nullptr, 0);
    }

private:
    static int greet(const gpr::Listener& listener, const std::string& tokens,
                     std::vector<std::string> features) {
        pollfd waiting{listener.fd(), POLLIN, 0};
        poll(&waiting, 1, -1);
        auto accepted = listener.accept();
        if (!accepted) return 1;
        gpr::Welcome welcome;
        welcome.software = "gpr test";
        welcome.host = gpr::describe_this_host();
        welcome.host.features = std::move(features);
        const auto established = gpr::accept_session(
            std::move(accepted->fd), gpr::TokenFile::load(tokens).value(), welcome,
            {accepted->peer, true}, std::chrono::steady_clock::now() + gpr::handshake_timeout);
        pause();
        return established ? 0 : 1;
    }

    std::vector<gpr::Listener> listeners_;  // the path goes with it
    pid_t child_ = -1;
};

TEST_CASE("health asks an acceptor and says what it lacks") {
    const gpr::TemporaryFolder folder;
    const std::string token = folder.path() + "/token";
    REQUIRE(gpr_command("token new --file " + token).status == 0);
    const std::string words = "health --token-file " + token + " unix:" + folder.path() + "/socket";
    std::vector<std::string> everything;
    const gpr::KernelFeatures known;
    for (const gpr::Feature* feature : known.all()) everything.emplace_back(feature->name);
    {
        const GreetingAcceptor acceptor(folder.path() + "/socket", token, everything);
        const Outcome outcome = gpr_command(words);
        CHECK(outcome.output.find("not encrypted, gpr test") != std::string::npos);
        CHECK(outcome.output.find("MISSING there") == std::string::npos);
    }
    everything.erase(everything.begin());
    const GreetingAcceptor acceptor(folder.path() + "/socket", token, everything);
    const Outcome outcome = gpr_command(words);
    CHECK(outcome.status == 1);
    CHECK(outcome.output.find("MISSING there: userfaultfd") != std::string::npos);
}

TEST_CASE("health lists features and says by its status whether one is missing") {
    const Outcome outcome = gpr_command("health --all");
    CHECK(outcome.output.find("userfaultfd") != std::string::npos);
    CHECK(outcome.output.find("OK: ") != std::string::npos);
    CHECK(gpr_command("health").output.find("FEATURE") == std::string::npos);
    CHECK(gpr_command("health --json").output.find("{\n") == 0);
    const bool missing = outcome.output.find("MISSING") != std::string::npos;
    CHECK(outcome.status == (missing ? 1 : 0));
    const Outcome no_answer = gpr_command("health unix:/nonexistent/socket");
    CHECK(no_answer.status == 1);
    CHECK(no_answer.output.find("token") != std::string::npos);
}
