#include "monitor/tracee/ptrace.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/tracee/waits.h"

namespace gpr {
namespace {

constexpr int most_looks = 10000;

int next_status(pid_t pid) {
    int status = 0;
    REQUIRE(waitpid(pid, &status, __WALL) == pid);
    return status;
}

bool is_at_its_end(pid_t pid) {
    const auto info = trace::signal_info(pid);
    return info && info->si_code == (SIGTRAP | PTRACE_EVENT_EXIT << 8);
}

}  // namespace

TEST_CASE("who answers a stop that SIGKILL has ended leaves the one at the thread's end") {
    const pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        const pid_t grandchild = fork();
        if (grandchild == 0) _exit(0);
        for (;;) pause();
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, WUNTRACED) == child);
    REQUIRE(trace::seize(child, trace::home_options));
    kill(child, SIGCONT);
    while (status >> 16 != PTRACE_EVENT_FORK) {
        status = next_status(child);
        if (status >> 16 != PTRACE_EVENT_FORK) trace::resume(child);
    }
    const auto grandchild = trace::event_message(child);
    REQUIRE(grandchild);

    kill(child, SIGKILL);
    for (int i = 0; !is_at_its_end(child) && i < most_looks; i++) usleep(1000);
    REQUIRE(is_at_its_end(child));
    CHECK_FALSE(trace::event_message(child));
    trace::resume(child);
    trace::resume_to_call(child);
    CHECK(is_at_its_end(child));

    const WaitStatus end = WaitStatus::of(child, next_status(child));
    CHECK(end.kind == WaitStatus::Kind::event);
    CHECK(end.value == PTRACE_EVENT_EXIT);
    CHECK(trace::event_message(child).value_or(0) == SIGKILL);
    trace::resume(child);
    const WaitStatus gone = WaitStatus::of(child, next_status(child));
    CHECK(gone.kind == WaitStatus::Kind::killed);

    const auto orphan = static_cast<pid_t>(*grandchild);
    kill(orphan, SIGKILL);
    while (!WaitStatus::of(orphan, next_status(orphan)).ended()) trace::resume(orphan);
}

}  // namespace gpr
