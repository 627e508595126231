#include "acceptor/box/cgroup.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <vector>

#include "acceptor/box/worker_process.h"
#include "tests/unit/temporary_folder.h"

namespace gpr {
namespace {

TEST_CASE("limits that cannot be had keep the daemon from starting, with the reason") {
    const SessionLimits limits{1 << 30, 100, 500, 0};
    const auto parent = CgroupParent::create(limits);
    if (!parent) {
        CHECK(parent.error().message().find("--session-") != std::string::npos);
        CHECK(parent.error().message().find("cannot be had: ") != std::string::npos);
        return;
    }
    std::string path;
    {
        const auto session = parent->create_session(limits);
        REQUIRE(session);
        path = session->path();
        for (const auto& [file, value] :
             {std::pair<std::string, std::string>{"memory.max", "1073741824"},
              {"pids.max", "100"},
              {"cpu.max", "50000 100000"}}) {
            std::string found;
            std::getline(std::ifstream(path + "/" + file) >> std::ws, found);
            CHECK(found == value);
        }
        CHECK(limit_exceeded(session->fd(), limits).empty());
    }
    CHECK(!std::filesystem::exists(path));
}

TEST_CASE("what a session that was killed with its daemon has left is removed by the next") {
    const auto probe = CgroupParent::create();
    if (!probe) {
        MESSAGE("skipped: " << probe.error().message());
        return;
    }
    std::array<int, 2> ends{};
    REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
    const Fd reader(ends[0]), writer(ends[1]);
    const pid_t worker = fork();
    if (worker == 0) {
        const auto session = probe->create_session({});
        if (!session || write(writer.get(), "x", 1) != 1) _exit(1);
        while (true) pause();
    }
    char byte = 0;
    REQUIRE(read(reader.get(), &byte, 1) == 1);
    const auto left = fmt::format("{}/session-{}", probe->path(), worker);
    CHECK(std::filesystem::exists(left));
    static_cast<void>(CgroupParent::create());
    CHECK(std::filesystem::exists(left));
    kill(worker, SIGKILL);
    REQUIRE(waitpid(worker, nullptr, 0) == worker);
    CHECK(std::filesystem::exists(left));
    static_cast<void>(CgroupParent::create());
    CHECK_FALSE(std::filesystem::exists(left));
}

TEST_CASE("without a cgroup tasks, descriptors and the worker's memory are limited") {
    constexpr uint64_t gib = 1ULL << 30;
    CHECK(process_limits({}, 64 * gib) == ProcessLimits{0, default_files, 2 * gib});
    CHECK(process_limits({32 * gib, 7, 0, 0}, 64 * gib) ==
          ProcessLimits{7, default_files, gib + gib / 2});
    CHECK(default_memory(64 * gib) == 48 * gib);
}

TEST_CASE("a worker that takes too much memory for itself ends in a way that can be told") {
    const pid_t worker = fork();
    if (worker == 0) {
        spdlog::set_level(spdlog::level::off);
        limit_own_memory(64 << 20);
        std::vector<std::unique_ptr<std::array<char, 4096>>> taken;
        while (taken.size() < (1 << 16)) {
            taken.push_back(std::make_unique<std::array<char, 4096>>());
        }
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(worker, &status, 0) == worker);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == worker_out_of_memory);
}

TEST_CASE("limits are files of a cgroup") {
    using Files = std::vector<LimitFile>;
    CHECK(limit_files({}, {"drm/a/vram0"}).empty());
    CHECK(limit_files({1 << 20, 0, 0, 0}, {}) == Files{{"memory.max", "1048576"},
                                                       {"memory.oom.group", "1"},
                                                       {"memory.swap.max", "0", true}});
    CHECK(limit_files({0, 7, 1500, 0}, {}) ==
          Files{{"pids.max", "7"}, {"cpu.max", "150000 100000"}});
    CHECK(limit_files({0, 0, 0, 4096}, {"drm/a/vram0", "drm/b/vram0"}) ==
          Files{{"dmem.max", "drm/a/vram0 4096"}, {"dmem.max", "drm/b/vram0 4096"}});
}

TEST_CASE("room for processes and threads is what the limit leaves") {
    const TemporaryFolder folder;
    folder.write("pids.current", "8\n");
    const Fd directory(open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    CHECK(has_room_for_tasks(directory.get(), {0, 12, 0, 0}, 4));
    CHECK_FALSE(has_room_for_tasks(directory.get(), {0, 12, 0, 0}, 5));
    CHECK(has_room_for_tasks(directory.get(), {}, 1000));
    CHECK(has_room_for_tasks(-1, {0, 1, 0, 0}, 1000));
}

TEST_CASE("a session that was killed for memory is told apart from others") {
    const TemporaryFolder folder;
    const auto events = [&](const std::string& text) {
        folder.write("memory.events", text);
        const Fd directory(open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        return limit_exceeded(directory.get(), {64 << 20, 0, 0, 0});
    };
    CHECK(events("low 0\nhigh 0\nmax 12\noom 1\noom_kill 0\n").empty());
    CHECK(events("low 0\noom 1\noom_kill 3\noom_group_kill 1\n").find("64 MiB") !=
          std::string::npos);
    CHECK(limit_exceeded(-1, {64 << 20, 0, 0, 0}).empty());
}

}  // namespace
}  // namespace gpr
