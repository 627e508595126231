#include "monitor/tracee/processor_follower.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

using namespace gpr;
using namespace std::chrono_literals;
using Advice = Conversation::Advice;

namespace {

constexpr int window = 16;

// What it said last. The events are `apart` from each other.
Advice speak(Conversation& with, pid_t tid, int events, Conversation::Time& now,
             std::chrono::microseconds apart) {
    Advice last = Advice::go_on;
    for (int i = 0; i < events; i++) last = with.on_event(tid, now += apart);
    return last;
}

// A child that runs on this processor only.
pid_t start_child_on(int processor) {
    const pid_t child = fork();
    if (child != 0) return child;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0) raise(SIGSTOP);
    _exit(0);
}

cpu_set_t processors_of_this_thread() {
    cpu_set_t set;
    REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
    return set;
}

int last_of(const cpu_set_t& set) {
    int last = -1;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &set)) last = i;
    }
    return last;
}

}  // namespace

TEST_CASE("processor follower: a thread that stops again and again is followed") {
    Conversation talk;
    Conversation::Time now{1h};
    CHECK(speak(talk, 7, 2, now, 100us) == Advice::go_on);
    CHECK_FALSE(talk.follows());
    CHECK(speak(talk, 7, 1, now, 100us) == Advice::follow);
    CHECK(talk.follows());
    bool looks = false;
    for (int i = 0; i < 4 * window; i++) {
        looks |= talk.on_event(7, now += 100us) == Advice::look_again;
    }
    CHECK(looks);
    CHECK(talk.follows());
}

TEST_CASE("processor follower: neither slow threads nor several in turns are followed") {
    Conversation slow;
    Conversation::Time now{1h};
    speak(slow, 7, 10 * window, now, 2ms);
    CHECK_FALSE(slow.follows());
    Conversation several;
    for (int i = 0; i < 10 * window; i++) several.on_event(7 + i % 3, now += 50us);
    CHECK_FALSE(several.follows());
    speak(several, 7, 3, now, 50us);
    REQUIRE(several.follows());
    bool left = false;
    for (int i = 0; i < window && !left; i++) {
        left = several.on_event(7 + i % 2, now += 50us) == Advice::leave;
    }
    CHECK(left);
    CHECK_FALSE(several.follows());
}

TEST_CASE("processor follower: it goes from one thread to the next, and back") {
    Conversation::Time now{1h};
    Conversation talk;
    speak(talk, 7, 4, now, 100us);
    REQUIRE(talk.follows());
    CHECK(speak(talk, 8, 1, now, 100us) == Advice::follow);
    CHECK(speak(talk, 8, 10, now, 100us) == Advice::go_on);
    CHECK(speak(talk, 7, 1, now, 100us) == Advice::follow);
    CHECK(talk.follows());
}

TEST_CASE("processor follower: after an exec it looks again") {
    Conversation::Time now{1h};
    Conversation talk;
    CHECK(talk.on_event(7, now += 100us, true) == Advice::go_on);
    speak(talk, 7, 3, now, 100us);
    CHECK(talk.on_event(7, now += 100us, true) == Advice::look_again);
    CHECK(talk.on_event(7, now += 100us) == Advice::go_on);
}

TEST_CASE("processor follower: a thread that only computes much itself goes on being followed") {
    Conversation::Time now{1h};
    Conversation talk;
    speak(talk, 7, 4, now, 100us);
    CHECK(speak(talk, 7, window, now, 1ms) == Advice::leave);
    talk.go_on(now);
    CHECK(talk.follows());
    CHECK(speak(talk, 7, 2, now, 100us) == Advice::go_on);
}

TEST_CASE("processor follower: after a slow conversation the next one has to wait") {
    Conversation talk;
    Conversation::Time now{1h};
    std::chrono::microseconds waited{0};
    for (int times = 0; times < 3; times++) {
        const auto began = now;
        for (int i = 0; i < 100'000 && !talk.follows(); i++) talk.on_event(7, now += 100us);
        REQUIRE(talk.follows());
        const auto took = std::chrono::duration_cast<std::chrono::microseconds>(now - began);
        CHECK(took > waited);
        waited = took;
        CHECK(speak(talk, 7, window, now, 1ms) == Advice::leave);
        talk.end(Conversation::Because::slow, now);
    }
    for (int i = 0; i < 100'000 && !talk.follows(); i++) talk.on_event(7, now += 100us);
    speak(talk, 7, 100 * window, now, 100us);
    talk.end(Conversation::Because::slow, now);
    speak(talk, 7, 3, now, 100us);
    CHECK(talk.follows());  // at once, after a long one
    talk.end(Conversation::Because::quiet, now);
    speak(talk, 7, 3, now, 100us);
    CHECK(talk.follows());
}

TEST_CASE(
    "processor follower: it goes to the processor of the thread, and back when that is quiet") {
    if (geteuid() != 0) return;  // needs CAP_SYS_NICE
    auto loop = Loop::create();
    REQUIRE(loop);
    const cpu_set_t before = processors_of_this_thread();
    const int processor = last_of(before);
    const pid_t child = start_child_on(processor);
    REQUIRE(child > 0);
    int status = 0;
    REQUIRE(waitpid(child, &status, WUNTRACED) == child);
    REQUIRE(WIFSTOPPED(status));
    {
        bool others_run = true;
        ProcessorFollower follower(**loop, [&](pid_t tid) {
            CHECK(tid == child);
            return others_run;
        });
        for (int i = 0; i < 2 * window; i++) follower.on_event(child);
        const cpu_set_t still = processors_of_this_thread();
        CHECK(CPU_EQUAL(&before, &still));
        others_run = false;
        std::this_thread::sleep_for(5ms);
        for (int i = 0; i < 2 * window; i++) follower.on_event(child);
        const cpu_set_t during = processors_of_this_thread();
        CHECK(CPU_COUNT(&during) == 1);
        CHECK(CPU_ISSET(processor, &during));
        CHECK((sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_IDLE);
        (*loop)->after(100ms, [&] { (*loop)->stop(); });
        (*loop)->run();
        const cpu_set_t after = processors_of_this_thread();
        CHECK(CPU_EQUAL(&before, &after));
        CHECK(sched_getscheduler(0) == SCHED_OTHER);
        for (int i = 0; i < 1000; i++) follower.on_event(child);
    }
    const cpu_set_t after = processors_of_this_thread();
    CHECK(CPU_EQUAL(&before, &after));
    CHECK(sched_getscheduler(0) == SCHED_OTHER);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
}
