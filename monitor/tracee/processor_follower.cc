#include "monitor/tracee/processor_follower.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "monitor/tracee/process_stat.h"

namespace gpr {

namespace {

using std::chrono::milliseconds;

constexpr uint32_t begins_after = 3;  // events in a row
constexpr milliseconds begins_within{1};
constexpr uint32_t window_events = 16;
constexpr milliseconds goes_on_within{8};   // for a window
constexpr milliseconds longest_delay{2};    // of the supervisor, in a window that took longer
constexpr uint32_t most_changes = 6;        // in a window
constexpr uint32_t looks_every = 2;         // windows
constexpr uint32_t long_conversation = 16;  // windows
constexpr milliseconds waits_if_not_possible{2}, shortest_wait{20}, longest_wait{2000};
constexpr milliseconds quiet_time{2};

// Only a privileged thread may stop giving way.
bool may_stop_giving_way() {
    if (sched_getscheduler(0) != SCHED_OTHER) return false;
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
    return syscall(SYS_capget, &header, sets) == 0 &&
           (sets[CAP_TO_INDEX(CAP_SYS_NICE)].effective & CAP_TO_MASK(CAP_SYS_NICE)) != 0;
}

bool set_policy(int policy) {
    const sched_param none{};
    return sched_setscheduler(0, policy, &none) == 0;
}

}  // namespace

Conversation::Advice Conversation::on_event(pid_t tid, Time now, bool moved) {
    if (tid != tid_) return on_other(tid, now);
    events_++;
    if (!follows_) {
        if (now - began_ > begins_within) {  // this one begins the next row
            began_ = now;
            events_ = 1;
        }
        if (events_ < begins_after || now < waits_until_) return Advice::go_on;
        follows_ = true;
        go_on(now);
        windows_ = 0;
        return Advice::follow;
    }
    const Advice advice = end_window(now);
    return moved && advice == Advice::go_on ? Advice::look_again : advice;
}

Conversation::Advice Conversation::end_window(Time now) {
    if (events_ < window_events) return Advice::go_on;
    if (now - began_ > goes_on_within) return Advice::leave;
    go_on(now);
    return ++windows_ % looks_every == 0 ? Advice::look_again : Advice::go_on;
}

void Conversation::go_on(Time now) {
    began_ = now;
    events_ = changes_ = 0;
}

Conversation::Advice Conversation::on_other(pid_t tid, Time now) {
    const bool in_turns = follows_ && ++changes_ > most_changes;
    if (in_turns) end(Because::cannot, now);
    tid_ = tid;
    if (follows_) {
        events_++;
        return end_window(now) == Advice::leave ? Advice::leave : Advice::follow;
    }
    go_on(now);
    events_ = 1;
    return in_turns ? Advice::leave : Advice::go_on;
}

void Conversation::end(Because why, Time now) {
    if (!std::exchange(follows_, false)) return;
    if (windows_ >= long_conversation) wait_ = milliseconds(0);
    if (why == Because::slow && windows_ < long_conversation) {
        wait_ = std::clamp(2 * wait_, shortest_wait, longest_wait);
        waits_until_ = now + wait_;
    }
    if (why == Because::cannot) waits_until_ = now + waits_if_not_possible;
    tid_ = 0;
    events_ = 0;
}

ProcessorFollower::ProcessorFollower(Loop& loop, std::function<bool(pid_t tid)> others_run)
    : loop_(loop),
      others_run_(std::move(others_run)),
      may_follow_(may_stop_giving_way()),
      delays_(may_follow_ ? open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC) : -1) {}

ProcessorFollower::~ProcessorFollower() {
    if (timer_) loop_.cancel(*timer_);
    leave();
}

void ProcessorFollower::on_event(pid_t tid, bool moved) {
    if (!may_follow_) return;
    events_++;
    const auto now = Clock::now();
    switch (conversation_.on_event(tid, now, moved)) {
        case Conversation::Advice::go_on: return;
        case Conversation::Advice::leave:
            if (!conversation_.follows()) return leave();
            if (was_held_up()) return end(Conversation::Because::slow);
            conversation_.go_on(now);
            return;
        case Conversation::Advice::follow:
            if (!timer_) look_whether_quiet();
            [[fallthrough]];
        case Conversation::Advice::look_again: follow(tid); return;
    }
}

void ProcessorFollower::follow(pid_t tid) {
    const auto cannot = [this] { end(Conversation::Because::cannot); };
    const auto where = scheduled(tid);
    if (!where || where->processor >= CPU_SETSIZE || others_run_(tid)) return cannot();
    const int processor = where->processor;
    [[maybe_unused]] const bool of_before = was_held_up();
    if (!own_processors_) {
        cpu_set_t own;
        if (sched_getaffinity(0, sizeof own, &own) != 0) return cannot();
        if (!set_policy(SCHED_IDLE | SCHED_RESET_ON_FORK)) return cannot();
        own_processors_ = own;
    }
    if (!CPU_ISSET(processor, &*own_processors_)) return cannot();
    if (std::exchange(processor_, processor) == processor) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) cannot();
}

// The kernel counts how long this thread could run and did not: the second number.
bool ProcessorFollower::was_held_up() {
    char text[128];
    const ssize_t got = delays_ ? pread(delays_.get(), text, sizeof text - 1, 0) : 0;
    text[std::max<ssize_t>(got, 0)] = 0;
    const char* at = std::strchr(text, ' ');
    const uint64_t delay_ns = at ? std::strtoull(at, nullptr, 10) : 0;
    const uint64_t before = std::exchange(delay_ns_, delay_ns);
    // 0: it is not counted.
    return delay_ns == 0 || std::chrono::nanoseconds(delay_ns - before) > longest_delay;
}

void ProcessorFollower::leave() { end(Conversation::Because::quiet); }

void ProcessorFollower::end(Conversation::Because why) {
    conversation_.end(why, Clock::now());
    processor_ = -1;
    if (!own_processors_) return;
    set_policy(SCHED_OTHER);
    sched_setaffinity(0, sizeof *own_processors_, &*own_processors_);
    own_processors_.reset();
}

void ProcessorFollower::look_whether_quiet() {
    timer_ = loop_.after(quiet_time, [this] {
        timer_.reset();
        if (!conversation_.follows()) return;
        if (std::exchange(events_seen_, events_) == events_) return leave();
        look_whether_quiet();
    });
}

}  // namespace gpr
