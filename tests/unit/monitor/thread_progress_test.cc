// Threads that compute, sleep and end, on a host whose processors are taken by others.
#include "monitor/node/thread_progress.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <vector>

#include "monitor/tracee/thread_status.h"

namespace gpr {
namespace {

using namespace std::chrono_literals;

class Child {
public:
    explicit Child(const std::function<void()>& work) : pid_(fork()) {
        if (pid_ != 0) return;
        work();
        _exit(0);
    }
    ~Child() {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] std::chrono::nanoseconds used() const {
        return std::chrono::nanoseconds(status_of_thread(pid_).cpu_ns);
    }

private:
    pid_t pid_;
};

void compute() {
    for (;;) asm volatile("");
}

void compute_seldom() {
    const sched_param none{};
    sched_setscheduler(0, SCHED_IDLE, &none);
    compute();
}

Task<void> wait_for(Loop& loop, pid_t tid, Progress enough) {
    co_await thread_gets_on(loop, tid, enough);
    loop.stop();
}

void wait_for(pid_t tid, Progress enough) {
    const auto loop = std::move(*Loop::create());
    spawn(wait_for(*loop, tid, enough));
    loop->run();
}

TEST_CASE("a thread that may run has got on once it has had a processor") {
    cpu_set_t processors;
    REQUIRE(sched_getaffinity(0, sizeof processors, &processors) == 0);
    std::vector<std::unique_ptr<Child>> others;
    for (int i = 0; i < CPU_COUNT(&processors); i++) {
        others.push_back(std::make_unique<Child>(compute));
    }
    const Child child(compute_seldom);
    for (int i = 0; i < 3; i++) {
        const auto before = child.used();
        wait_for(child.pid(), {2ms, 1s});
        CHECK(child.used() - before >= 2ms);
    }
}

TEST_CASE("a thread that sleeps has got on, at once or after a time") {
    const Child child([] { pause(); });
    while (status_of_thread(child.pid()).letter != 'S') usleep(1000);
    wait_for(child.pid(), {1s});
    const auto began = Clock::now();
    wait_for(child.pid(), {1s, 30ms});
    CHECK(Clock::now() - began >= 30ms);
    CHECK(child.used() < 1s);
}

TEST_CASE("a thread that stands before its instruction has not begun, for some time") {
    const Child child([] { compute(); });
    while (child.used() < 1ms) usleep(1000);
    kill(child.pid(), SIGSTOP);
    while (status_of_thread(child.pid()).letter != 'T') usleep(1000);
    const ThreadStatus there = status_of_thread(child.pid());
    REQUIRE(there.call == -1);
    wait_for(child.pid(), {.on_processor = 1s, .begins_at = there.instruction + 1});
    const auto began = Clock::now();
    wait_for(child.pid(), {.on_processor = 1s, .begins_at = there.instruction});
    CHECK(Clock::now() - began >= 400ms);
}

TEST_CASE("nobody waits for a thread that has gone") {
    pid_t gone = 0;
    {
        const Child child([] {});
        gone = child.pid();
    }
    wait_for(gone, {1s, 1h});
}

}  // namespace
}  // namespace gpr
