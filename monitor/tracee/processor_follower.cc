#include "monitor/tracee/processor_follower.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "monitor/tracee/process_stat.h"

namespace gpr {

namespace {

using std::chrono::milliseconds;

constexpr uint32_t window_events = 16;
constexpr uint32_t most_of_others = 2;                       // in a window
constexpr milliseconds begins_within{4}, goes_on_within{8};  // for a window
constexpr uint32_t looks_every = 2;                          // windows
constexpr uint32_t long_conversation = 16;                   // windows
constexpr milliseconds shortest_wait{20}, longest_wait{2000};
constexpr milliseconds quiet_time{5};

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

Conversation::Advice Conversation::on_event(pid_t tid, Time now) {
    if (tid != tid_ && !follows_ && ++of_others_ > most_of_others) {
        tid_ = tid;
        events_ = of_others_ = 0;
        window_began_ = now;
        return Advice::go_on;
    }
    if (tid != tid_ && follows_) of_others_++;
    if (++events_ < window_events) return Advice::go_on;
    const Advice advice = on_window(now);
    events_ = of_others_ = 0;
    window_began_ = now;
    return advice;
}

Conversation::Advice Conversation::on_window(Time now) {
    const auto took = now - window_began_;
    if (!follows_) {
        if (took > begins_within || now < waits_until_) return Advice::go_on;
        follows_ = true;
        windows_ = 0;
        return Advice::follow;
    }
    if (took > goes_on_within || of_others_ > most_of_others) return Advice::leave;
    return ++windows_ % looks_every == 0 ? Advice::look_again : Advice::go_on;
}

void Conversation::end(Time now) {
    if (!std::exchange(follows_, false)) return;
    wait_ = windows_ >= long_conversation ? milliseconds(0)
                                          : std::clamp(2 * wait_, shortest_wait, longest_wait);
    waits_until_ = now + wait_;
    tid_ = 0;
    events_ = of_others_ = 0;
}

ProcessorFollower::ProcessorFollower(Loop& loop)
    : loop_(loop), may_follow_(may_stop_giving_way()) {}

ProcessorFollower::~ProcessorFollower() {
    if (timer_) loop_.cancel(*timer_);
    leave();
}

void ProcessorFollower::on_event(pid_t tid) {
    if (!may_follow_) return;
    events_++;
    switch (conversation_.on_event(tid, Clock::now())) {
        case Conversation::Advice::go_on: return;
        case Conversation::Advice::leave: leave(); return;
        case Conversation::Advice::follow:
            if (!timer_) look_whether_quiet();
            [[fallthrough]];
        case Conversation::Advice::look_again: follow(tid); return;
    }
}

void ProcessorFollower::follow(pid_t tid) {
    const auto processor = processor_of(tid);
    if (!processor || *processor >= CPU_SETSIZE) return leave();
    if (!own_processors_) {
        cpu_set_t own;
        if (sched_getaffinity(0, sizeof own, &own) != 0) return leave();
        if (!set_policy(SCHED_IDLE | SCHED_RESET_ON_FORK)) return leave();
        own_processors_ = own;
    }
    if (!CPU_ISSET(*processor, &*own_processors_)) return leave();
    if (std::exchange(processor_, *processor) == *processor) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(*processor, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) leave();
}

void ProcessorFollower::leave() {
    conversation_.end(Clock::now());
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
