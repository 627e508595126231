// A daemon of the acceptor in a process of its own, for tests that talk with it.
#pragma once

#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "acceptor/daemon/daemon.h"
#include "tests/unit/acceptor/stub_process.h"
#include "tests/unit/temporary_folder.h"
#include "transport/link.h"
#include "transport/loop.h"

namespace gpr::test {

using namespace std::chrono_literals;

constexpr pid_t wanted_pid = 4242;
constexpr auto patience = 20s;

inline Deadline soon() { return std::chrono::steady_clock::now() + patience; }

// What happens must happen; how fast is not asked.
inline bool eventually(const std::function<bool()>& condition) {
    for (const auto end = soon(); std::chrono::steady_clock::now() < end;) {
        if (condition()) return true;
        std::this_thread::sleep_for(5ms);
    }
    return false;
}

inline bool has_listening_socket() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        int listening = 0;
        socklen_t size = sizeof(listening);
        const int fd = std::stoi(entry.path().filename().string());
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening) {
            return true;
        }
    }
    return false;
}

// Makes a process, then stays until the peer goes.
inline int test_worker(EstablishedInitiator established, Sandbox& sandbox) {
    if (has_listening_socket()) return 20;
    auto process = StubProcess::spawn(sandbox, wanted_pid);
    if (!process) return 21;
    if (process->call(SYS_getpid) != wanted_pid) return 22;
    auto loop = Loop::create();
    if (!loop) return 23;
    const auto link = make_link(**loop, std::move(established));
    link->on_frame([](ReceivedFrame&&) {});
    link->on_closed([&loop](const Error&) { (*loop)->stop(); });
    (*loop)->run();
    return 33;
}

// Not executed anew: this is no gpr.
inline SessionStart in_fork(WorkerMain worker) {
    return [worker = std::move(worker)](OrderedSession session) {
        return serve_ordered(std::move(session), worker);
    };
}

struct Client {
    std::unique_ptr<Loop> loop;
    std::unique_ptr<Link> link;
    std::string closed;

    // Until the acceptor ends it; the reason it gave.
    std::string await_close() {
        link->on_frame([](ReceivedFrame&&) {});
        link->on_closed([this](const Error& reason) {
            closed = reason.message();
            loop->stop();
        });
        loop->after(patience, [this] { loop->stop(); });
        loop->run();
        return closed;
    }
};

class TestDaemon {
public:
    explicit TestDaemon(unsigned max_sessions = 8, DaemonLimits limits = {},
                        const SessionStart& start = in_fork(test_worker),
                        const std::string& notify_socket = "") {
        token_ = *new_token();
        directory_.write("token", token_.line() + "\n", 0600);
        options_.listen = {"unix:" + directory_.path() + "/socket", "127.0.0.1:0"};
        options_.token_file = directory_.path() + "/token";
        options_.log_file = directory_.path() + "/log";
        options_.log_level = "debug";
        options_.max_sessions = max_sessions;
        pid_ = fork();
        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (!notify_socket.empty()) setenv("NOTIFY_SOCKET", notify_socket.c_str(), 1);
            _exit(run_acceptor_daemon(options_, start, limits));
        }
        REQUIRE(eventually([this] { return log_lines("listening on") == 2; }));
    }
    ~TestDaemon() {
        if (pid_ > 0) stop();
    }
    TestDaemon(const TestDaemon&) = delete;
    TestDaemon& operator=(const TestDaemon&) = delete;

    int stop(int signal_number = SIGTERM) {
        int status = 0;
        kill(pid_, signal_number);
        waitpid(pid_, &status, 0);
        pid_ = -1;
        return status;
    }

    [[nodiscard]] std::string log() const {
        std::ostringstream text;
        text << std::ifstream(directory_.path() + "/log").rdbuf();
        return text.str();
    }
    [[nodiscard]] int log_lines(const std::string& words) const {
        std::istringstream in(log());
        int count = 0;
        for (std::string line; std::getline(in, line);) {
            count += line.find(words) != std::string::npos ? 1 : 0;
        }
        return count;
    }
    [[nodiscard]] Endpoint unix_endpoint() const { return *parse_endpoint(options_.listen[0]); }
    [[nodiscard]] Endpoint tcp_endpoint() const {
        const auto text = log();
        const auto begin = text.find("127.0.0.1:");
        return *parse_endpoint(text.substr(begin, text.find('\n', begin) - begin));
    }
    [[nodiscard]] Result<EstablishedAcceptor> connect(const Endpoint& endpoint, const Token& token,
                                                      bool only_looks = false) const {
        Hello hello;
        hello.only_looks = only_looks;
        hello.session_id = new_session_id();
        hello.host = describe_this_host();
        return connect_session(endpoint, token, hello, soon());
    }
    [[nodiscard]] Client open(const Endpoint& endpoint) const {
        auto established = connect(endpoint, token_);
        if (!established) FAIL(established.error().message());
        Client client;
        client.loop = std::move(*Loop::create());
        client.link = make_link(*client.loop, std::move(*established));
        return client;
    }
    // A session that stands, by the sandbox's init being there.
    [[nodiscard]] Client open_and_await(const Endpoint& endpoint) const {
        const auto before = sandboxed().size();
        auto client = open(endpoint);
        REQUIRE(eventually([&] { return sandboxed().size() == before + 1; }));
        return client;
    }
    // The empty processes of this daemon's workers, as host pids.
    [[nodiscard]] std::vector<pid_t> sandboxed() const {
        std::vector<pid_t> found;
        for (const pid_t worker : workers()) {
            for (const pid_t child : children_of(worker)) {
                std::ifstream file(fmt::format("/proc/{}/status", child));
                std::ostringstream text;
                text << file.rdbuf();
                if (text.str().find(fmt::format("\t{}\nNSpgid", wanted_pid)) != std::string::npos &&
                    text.str().find("\nSeccomp:\t2\n") != std::string::npos) {
                    found.push_back(child);
                }
            }
        }
        return found;
    }
    [[nodiscard]] std::vector<pid_t> workers() const { return children_of(pid_); }

    static std::vector<pid_t> children_of(pid_t pid) {
        std::ifstream file(fmt::format("/proc/{}/task/{}/children", pid, pid));
        std::vector<pid_t> children;
        for (pid_t child = 0; file >> child;) children.push_back(child);
        return children;
    }

    [[nodiscard]] const Token& token() const { return token_; }
    [[nodiscard]] const std::string& directory() const { return directory_.path(); }
    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] bool alive() const { return waitpid(pid_, nullptr, WNOHANG) == 0; }

private:
    TemporaryFolder directory_;
    Token token_;
    AcceptorOptions options_;
    pid_t pid_ = -1;
};

}  // namespace gpr::test
