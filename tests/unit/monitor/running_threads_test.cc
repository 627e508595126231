#include "monitor/node/running_threads.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

using namespace gpr;
using namespace std::chrono_literals;

namespace {

// Who computes has a processor of its own, if there are two.
class Child {
public:
    explicit Child(bool computes) {
        sched_getaffinity(0, sizeof all_, &all_);
        int ours = 0;
        while (!CPU_ISSET(ours, &all_)) ours++;
        cpu_set_t theirs = all_, only_ours;
        if (CPU_COUNT(&all_) > 1) CPU_CLR(ours, &theirs);
        CPU_ZERO(&only_ours);
        CPU_SET(ours, &only_ours);
        pid_ = fork();
        if (pid_ != 0) {
            sched_setaffinity(0, sizeof only_ours, &only_ours);
            return;
        }
        sched_setaffinity(0, sizeof theirs, &theirs);
        while (computes) {
        }
        while (true) pause();
    }
    ~Child() {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        sched_setaffinity(0, sizeof all_, &all_);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    [[nodiscard]] pid_t pid() const { return pid_; }

    [[nodiscard]] bool runs_beside_us() const { return CPU_COUNT(&all_) > 1; }

private:
    cpu_set_t all_{};
    pid_t pid_ = 0;
};

// One of its two threads waits for us, and so do two helpers.
constexpr RunningThreads::Counts one_waits{
    .threads = 2, .helpers = 2, .waiting = 3, .processes = 1};

RunningThreads::EachProcess only(pid_t pid) {
    return [pid](const auto& each) { each(pid); };
}

RunningThreads::EachProcess none() {
    return [](const auto&) { FAIL("no clock is needed"); };
}

}  // namespace

TEST_CASE("no thread runs if all wait for us, and any may if no thread of the program does") {
    RunningThreads running;
    CHECK_FALSE(running.any({.threads = 2, .helpers = 2, .waiting = 4, .processes = 1}, none()));
    CHECK(running.any({.threads = 2, .helpers = 2, .waiting = 2, .processes = 1}, none()));
    CHECK(running.any({.threads = 9, .helpers = 9, .waiting = 10, .processes = 9}, none()));
}

TEST_CASE("a thread that waits in a call of its own does not run") {
    const Child child(false);
    usleep(10'000);  // until it waits
    RunningThreads running;
    for (int i = 0; i < 1000; i++) CHECK_FALSE(running.any(one_waits, only(child.pid())));
}

TEST_CASE("a thread that computes runs, as two looks tell that follow one another") {
    const Child child(true);
    RunningThreads running;
    CHECK_FALSE(running.any(one_waits, only(child.pid())));  // nothing is known yet
    if (!child.runs_beside_us()) return;
    bool found = false;
    const auto end = Clock::now() + 10s;
    while (!found && Clock::now() < end) {
        const auto soon = Clock::now() + 20us;
        while (Clock::now() < soon) {
        }
        found = running.any(one_waits, only(child.pid()));
    }
    CHECK(found);
}

TEST_CASE("what a process ran long before the last look does not count") {
    const Child child(true);
    RunningThreads running;
    CHECK_FALSE(running.any(one_waits, only(child.pid())));
    usleep(20'000);  // it has run meanwhile
    CHECK_FALSE(running.any(one_waits, only(child.pid())));
}
