#include "monitor/home/observations.h"

#include "monitor/home/home.h"
#include "monitor/home/stops.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/resumed_wait.h"
#include "monitor/tracee/thread_status.h"

namespace gpr::home {

namespace {

// Whoever asks the session waits somewhat longer: ControlClient.
constexpr std::chrono::seconds most_time{8};

}  // namespace

Observations::Observations(Home& home) : home_(home), questions_(home.loop) {}

Task<std::vector<Observed>> Observations::ask(Question question) {
    std::vector<Observed> all(home_.acceptors.size());
    if (!home_.acceptors.reachable()) co_return all;
    FrameBuilder frame;
    auto asked = frame.session().initObserveQuestion();
    asked.setPid(question.pid);
    asked.setThreads(question.threads);
    asked.setRegisters(question.registers);
    auto ranges = asked.initRanges(static_cast<unsigned>(2 * question.ranges.size()));
    for (unsigned i = 0; i < question.ranges.size(); i++) {
        ranges.set(2 * i, question.ranges[i].begin.value);
        ranges.set(2 * i + 1, question.ranges[i].end.value);
    }
    std::vector<uint32_t> cookies;
    home_.acceptors.each([&](const RemoteNode& node) {
        cookies.push_back(questions_.begin());
        asked.setCookie(cookies.back());
        node.link.send(frame, Priority::urgent);
    });
    // If an acceptor does not answer in time, nothing is known of it, as if it were lost.
    const auto patience = home_.loop.after(most_time, [this, cookies] {
        for (const uint32_t cookie : cookies) questions_.answer(cookie, {});
    });
    for (size_t i = 0; i < cookies.size(); i++) all[i] = co_await questions_.answer_to(cookies[i]);
    home_.loop.cancel(patience);
    co_return all;
}

Task<std::optional<Standing>> Observations::where_stands(pid_t pid, pid_t tid) {
    HomeThread* thread = home_.find_thread(pid, tid);
    const bool waits = home_.pager.faults.waits(tid);
    if (!thread || thread->remote() || thread->awaited || thread->ends() || waits ||
        status_of_thread(tid).letter != 'R') {
        co_return std::nullopt;
    }
    auto context = co_await home_.stops.stop(*thread);
    if (!context) co_return std::nullopt;
    std::optional<Standing> standing = standing_of(tid);
    make_wait_again(tid);  // it may have begun to wait since it was looked at
    trace::resume(tid);
    co_return standing;
}

void Observations::on_answer(RemoteNode& node, wire::ObserveAnswer::Reader answer) {
    node.counts.note(counts_from_wire(answer.getCounts()));
    questions_.answer(answer.getCookie(), observed_from_wire(answer));
}

}  // namespace gpr::home
