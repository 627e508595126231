#include "acceptor/daemon/daemon.h"

#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <thread>

#include "acceptor/box/cgroup.h"
#include "acceptor/box/privileges.h"
#include "acceptor/daemon/embedded.h"
#include "tests/unit/acceptor/test_daemon.h"
#include "tests/unit/temporary_folder.h"
#include "transport/link.h"
#include "transport/loop.h"

using namespace gpr;
namespace literals = std::chrono_literals;
using namespace literals;
using namespace gpr::test;

TEST_CASE("a session over each kind of address, from hello to its end") {
    TestDaemon daemon;
    for (const auto& endpoint : {daemon.unix_endpoint(), daemon.tcp_endpoint()}) {
        const int ended = daemon.log_lines("status 33");
        auto client = daemon.open_and_await(endpoint);
        client.link.reset();
        REQUIRE(eventually([&] { return daemon.log_lines("status 33") == ended + 1; }));
        CHECK(daemon.workers().empty());
    }
    CHECK(daemon.log_lines("begins, for") == 2);
    CHECK(daemon.log_lines("session ended") == 2);
    CHECK(daemon.log().find(daemon.token().line()) == std::string::npos);
    CHECK(daemon.stop() == 0);
    CHECK(!std::filesystem::exists(daemon.directory() + "/socket"));
}

TEST_CASE("a wrong token, silence and garbage are refused with a reason, and it goes on") {
    DaemonLimits limits;
    limits.admission.strangers = 1000;
    limits.admission.strangers_per_address = 1000;
    limits.stranger_log.lines = 1000;
    TestDaemon daemon(8, limits);
    const auto other = new_token();
    REQUIRE(other);
    for (const auto& endpoint : {daemon.unix_endpoint(), daemon.tcp_endpoint()}) {
        CHECK(!daemon.connect(endpoint, *other));
        auto known_name = *other;
        known_name.id = daemon.token().id;
        CHECK(!daemon.connect(endpoint, known_name));
    }
    REQUIRE(eventually([&] { return daemon.log_lines("refused: ") == 4; }));

    std::mt19937 random(7);
    constexpr int visits = 60;
    for (int i = 0; i < visits; ++i) {
        auto fd =
            connect_endpoint(i % 2 == 0 ? daemon.unix_endpoint() : daemon.tcp_endpoint(), soon());
        REQUIRE(fd);
        std::string garbage(random() % 5000, '\0');
        for (auto& byte : garbage) byte = static_cast<char>(random());
        if (i % 3 != 0) send(fd->get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    }
    REQUIRE(eventually([&] { return daemon.log_lines("status 100") == 4 + visits; }));
    REQUIRE(daemon.alive());
    const auto client = daemon.open_and_await(daemon.tcp_endpoint());
}

TEST_CASE("strangers that hold connections open do not keep others out") {
    DaemonLimits limits;
    limits.admission.strangers = 6;
    limits.admission.strangers_per_address = 4;
    limits.stranger_log.lines = 1000;
    for (const std::chrono::milliseconds grace : {3'600'000ms, 0ms}) {
        limits.admission.stranger_grace = grace;
        TestDaemon daemon(8, limits);
        std::vector<Fd> silent;
        const auto come = [&](const Endpoint& endpoint) {
            auto fd = connect_endpoint(endpoint, soon());
            REQUIRE(fd);
            silent.push_back(std::move(*fd));
        };
        for (int i = 0; i < 5; ++i) come(daemon.tcp_endpoint());
        if (grace != 0ms) {
            REQUIRE(eventually([&] { return daemon.log_lines("turned away: 4 conn") == 1; }));
            continue;
        }
        REQUIRE(eventually([&] { return daemon.log_lines("had to make room") == 1; }));
        for (int i = 0; i < 20; ++i) come(daemon.unix_endpoint());
        REQUIRE(eventually([&] { return daemon.log_lines("had to make room") == 19; }));
        CHECK(eventually([&] { return daemon.workers().size() <= 6; }));
        const auto client = daemon.open_and_await(daemon.unix_endpoint());
    }
}

TEST_CASE("strangers cannot fill the log, and who has a token is told of all the same") {
    DaemonLimits limits;
    limits.stranger_log = {5, 3'600'000ms};
    TestDaemon daemon(8, limits);
    const auto other = new_token();
    REQUIRE(other);
    for (int i = 0; i < 20; ++i) CHECK(!daemon.connect(daemon.unix_endpoint(), *other));
    REQUIRE(eventually([&] { return daemon.workers().empty(); }));
    CHECK(daemon.log_lines("refused: ") == 5);
    auto client = daemon.open_and_await(daemon.unix_endpoint());
    client.link.reset();
    REQUIRE(eventually([&] { return daemon.log_lines("session ended") == 1; }));
    CHECK(daemon.log_lines("status 100") == 5);
    CHECK(daemon.log_lines("begins, for") == 1);
}

TEST_CASE("how many lines strangers were not given is told") {
    DaemonLimits limits;
    limits.stranger_log = {1, 200ms};
    TestDaemon daemon(8, limits);
    const auto other = new_token();
    REQUIRE(other);
    REQUIRE(eventually([&] {
        CHECK(!daemon.connect(daemon.unix_endpoint(), *other));
        return daemon.log_lines("more connections of strangers, without a line each") > 0;
    }));
}

TEST_CASE("strangers are ended when they take too long") {
    DaemonLimits limits;
    limits.admission.stranger_lifetime = 100ms;
    TestDaemon daemon(8, limits);
    const auto fd = connect_endpoint(daemon.unix_endpoint(), soon());
    REQUIRE(fd);
    REQUIRE(eventually([&] { return daemon.log_lines("took too long") == 1; }));
    REQUIRE(eventually([&] { return daemon.workers().empty(); }));
}

TEST_CASE("sessions beyond the limit are told why") {
    TestDaemon daemon(1);
    auto first = daemon.open_and_await(daemon.unix_endpoint());
    const auto second = daemon.connect(daemon.unix_endpoint(), daemon.token());
    REQUIRE_FALSE(second);
    CHECK(second.error().message().find(
              " is full (1 of 1 sessions); try again later, or start it with a higher "
              "--max-sessions") != std::string::npos);
    // Who only looks takes nobody's place.
    const auto look = daemon.connect(daemon.unix_endpoint(), daemon.token(), true);
    REQUIRE(look);
    CHECK_FALSE(look->peer.host.kernel_release.empty());
    REQUIRE(
        eventually([&] { return daemon.log_lines(": refused: this acceptor is full (") == 1; }));
    CHECK(daemon.log_lines("initiator") == 0);
    first.link.reset();
    REQUIRE(eventually([&] { return daemon.workers().empty(); }));
    auto third = daemon.open_and_await(daemon.unix_endpoint());
}

TEST_CASE("a daemon that cannot make sandboxes does not start") {
    const TemporaryFolder directory;
    AcceptorOptions options;
    options.listen = {"unix:" + directory.path() + "/socket"};
    options.token_file = directory.write("token", new_token()->line() + "\n", 0600);
    const pid_t child = fork();
    if (child == 0) {
        if (!keep_only_capabilities(0)) _exit(100);
        _exit(run_acceptor_daemon(options, in_fork(test_worker), {}));
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 125);
    CHECK_FALSE(std::filesystem::exists(directory.path() + "/socket"));
}

TEST_CASE("a killed worker leaves nothing, and the daemon goes on") {
    TestDaemon daemon;
    for (int round = 0; round < 5; ++round) {
        auto client = daemon.open_and_await(daemon.unix_endpoint());
        const auto process = daemon.sandboxed();
        const auto workers = daemon.workers();
        REQUIRE(process.size() == 1);
        REQUIRE(workers.size() == 1);
        kill(workers[0], SIGKILL);
        CHECK(!client.await_close().empty());
        REQUIRE(eventually([&] { return kill(process[0], 0) == -1; }));
        REQUIRE(eventually([&] { return daemon.workers().empty(); }));
    }
    CHECK(daemon.log_lines("killed by signal 9") == 5);
}

// "gpr-init S, gpr-empty t": who they are and what they do.
std::string children_of_this_process() {
    std::ifstream list(fmt::format("/proc/self/task/{}/children", getpid()));
    std::string text;
    for (pid_t pid = 0; list >> pid;) {
        std::ifstream stat(fmt::format("/proc/{}/stat", pid));
        std::string line;
        std::getline(stat, line);
        text += line.substr(0, line.find(' ', line.rfind(')') + 2)) + ", ";
    }
    return text;
}

TEST_CASE("SIGTERM ends all sessions, also stubborn ones; SIGKILL too") {
    const WorkerMain stubborn = [](EstablishedInitiator established, Sandbox& sandbox) {
        signal(SIGTERM, SIG_IGN);
        return test_worker(std::move(established), sandbox);
    };
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // of what the daemon leaves when it is killed
    signal(SIGHUP, SIG_DFL);           // whoever runs the tests under nohup has it ignored
    const auto is_gone = [](pid_t pid) {
        while (waitpid(-1, nullptr, WNOHANG | __WALL) > 0) {
        }
        return kill(pid, 0) == -1;
    };
    for (const int signal_number : {SIGTERM, SIGINT, SIGHUP, SIGKILL}) {
        DaemonLimits limits;
        limits.stop_grace = 200ms;
        TestDaemon daemon(8, limits, in_fork(stubborn));
        auto first = daemon.open_and_await(daemon.unix_endpoint());
        auto second = daemon.open_and_await(daemon.tcp_endpoint());
        const auto processes = daemon.sandboxed();
        const auto workers = daemon.workers();
        CHECK(daemon.stop(signal_number) == (signal_number == SIGKILL ? SIGKILL : 0));
        for (const auto& pids : {processes, workers}) {
            CHECK(pids.size() == 2);
            for (const pid_t pid : pids) CHECK(eventually([&] { return is_gone(pid); }));
        }
        CHECK(!first.await_close().empty());
        // The sandboxes' inits end, too, and whatever else came to us.
        INFO("still there: ", children_of_this_process());
        CHECK(eventually([] {
            while (waitpid(-1, nullptr, WNOHANG | __WALL) > 0) {
            }
            return waitpid(-1, nullptr, WNOHANG | __WALL) == -1;
        }));
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_CASE("systemd is told when the daemon is ready") {
    const std::string name = fmt::format("@gpr-notify-test-{}", getpid());
    const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path + 1, name.c_str() + 1, name.size() - 1);
    REQUIRE(bind(socket.get(), reinterpret_cast<sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())) == 0);
    TestDaemon daemon(8, {}, in_fork(test_worker), name);
    pollfd ready{socket.get(), POLLIN, 0};
    REQUIRE(poll(&ready, 1, 20'000) == 1);
    char text[32] = {};
    CHECK(read(socket.get(), text, sizeof(text) - 1) == 7);
    CHECK(std::string(text) == "READY=1");
}

TEST_CASE("sessions live in cgroups of their own, which go with them") {
    const auto parent = CgroupParent::create();
    if (!parent) {
        MESSAGE("skipped: " << parent.error().message());
        return;
    }
    TestDaemon daemon;
    for (const int signal_number : {0, SIGKILL}) {
        auto client = daemon.open_and_await(daemon.unix_endpoint());
        const auto path = fmt::format("{}/session-{}", parent->path(), daemon.workers().at(0));
        std::ifstream file(path + "/cgroup.procs");
        std::vector<pid_t> members;
        for (pid_t pid = 0; file >> pid;) members.push_back(pid);
        CHECK(members.size() == 2);  // init and the empty process
        if (signal_number != 0) kill(daemon.workers().at(0), signal_number);
        client.link.reset();
        CHECK(eventually([&] { return !std::filesystem::exists(path); }));
    }
}

TEST_CASE("an embedded acceptor serves one session and keeps none of our descriptors") {
    std::array<int, 2> pipe_fds{};
    REQUIRE(pipe(pipe_fds.data()) == 0);
    const Fd reader(pipe_fds[0]);
    Fd writer(pipe_fds[1]);
    auto embedded = start_embedded_acceptor({}, in_fork(test_worker));
    REQUIRE(embedded);
    writer.reset();
    pollfd ended{reader.get(), 0, 0};
    CHECK(poll(&ended, 1, 20'000) == 1);
    CHECK((ended.revents & POLLHUP) != 0);

    Hello hello;
    hello.session_id = new_session_id();
    hello.host = describe_this_host();
    Endpoint endpoint;
    endpoint.kind = Endpoint::Kind::unix_socket;
    endpoint.plain = true;
    auto established =
        greet_acceptor(std::move(embedded->connection), endpoint, embedded->token, hello, soon());
    if (!established) FAIL(established.error().message());
    CHECK(established->peer.host.host_name == hello.host.host_name);
    { const auto gone = std::move(*established); }
    int status = 0;
    REQUIRE(waitpid(embedded->pid, &status, 0) == embedded->pid);
    CHECK(WEXITSTATUS(status) == 33);
}

TEST_CASE("an embedded acceptor dies with its parent") {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    const pid_t parent = fork();
    if (parent == 0) {
        const auto embedded = start_embedded_acceptor({}, in_fork(test_worker));
        _exit(embedded ? 0 : 1);
    }
    for (int ended = 0; ended < 2; ++ended) REQUIRE(waitpid(-1, nullptr, 0) > 0);
    CHECK(waitpid(-1, nullptr, 0) == -1);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}
