#include "acceptor/worker/observations.h"

#include <algorithm>
#include <vector>

#include "acceptor/worker/session_tally.h"
#include "acceptor/worker/worker.h"
#include "monitor/node/observed.h"
#include "monitor/paging/resident.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::worker {

namespace {

constexpr std::chrono::milliseconds between_tallies{500};
constexpr std::chrono::milliseconds between_ends{50};  // likewise, when processes end
constexpr std::chrono::milliseconds stops_in{50};
constexpr std::chrono::seconds most_stopping_time{3};  // for all threads together
// The kernel needs some 20 us for each.
constexpr size_t most_threads_at_once = 32;

ObservedThread observed(const Pager& pager, const RemoteThread& thread) {
    const paging::ThreadTraffic traffic = pager.traffic.of_thread(thread.tid);
    ObservedThread seen;
    seen.pid = thread.process->pid;
    seen.tid = thread.tid;
    seen.here = thread.here();
    seen.status = status_of_thread(thread.host_tid);
    seen.faults = traffic.faults;
    seen.pages = traffic.pages;
    seen.waits_for_page = pager.faults.waits(thread.tid);
    return seen;
}

// Some at a time, so each is looked up again: it may have ended meanwhile.
Task<std::vector<ObservedThread>> threads_of(Worker& worker, pid_t pid) {
    std::vector<std::pair<pid_t, pid_t>> wanted;
    for (const auto& [id, process] : worker.processes) {
        if (pid != 0 && id != pid) continue;
        for (const auto& [tid, thread] : process->threads) wanted.emplace_back(id, tid);
    }
    if (wanted.size() > most_observed_threads) wanted.resize(most_observed_threads);
    std::vector<ObservedThread> all;
    for (size_t i = 0; i < wanted.size(); i++) {
        if (i % most_threads_at_once == most_threads_at_once - 1) {
            co_await worker.loop.sleep(std::chrono::nanoseconds(0));
        }
        const RemoteThread* thread = worker.find_thread(wanted[i].first, wanted[i].second);
        if (thread) all.push_back(observed(worker.pager, *thread));
    }
    co_return all;
}

}  // namespace

Task<std::vector<uint64_t>> Observations::resident(pid_t pid, Frame frame) {
    std::vector<uint64_t> pages;
    RemoteProcess* process = worker_.find_process(pid);
    if (!process || !process->fragment) co_return pages;
    const std::shared_ptr<Fragment> fragment = process->fragment;
    const auto ranges = frame->session().getObserveQuestion().getRanges();
    const size_t count = std::min<size_t>(ranges.size() / 2, most_observed_ranges);
    for (unsigned i = 0; i < count; i++) {
        const Range range{{ranges[2 * i]}, {ranges[2 * i + 1]}};
        const bool good = range.begin < range.end && range.begin.value % page_size == 0 &&
                          range.end.value % page_size == 0 && range.end.value <= user_space_end;
        uint64_t there = 0;
        if (good) there = co_await paging::resident_pages(worker_.loop, fragment, range);
        pages.push_back(there);
    }
    co_return pages;
}

Task<std::optional<Standing>> Observations::where_stands(pid_t pid, pid_t tid) {
    RemoteThread* thread = worker_.find_thread(pid, tid);
    if (!thread || thread->where() != RemoteThread::Where::running || thread->awaited) {
        co_return std::nullopt;
    }
    if (thread->process->stops()) co_return std::nullopt;
    const pid_t host_tid = thread->host_tid;
    if (wanted_.contains(host_tid)) co_return std::nullopt;
    const auto stop = std::make_shared<Stop>(worker_.loop);
    wanted_[host_tid] = stop;
    trace::interrupt(host_tid);
    worker_.waits.look_for_stop(host_tid);
    const auto timer = worker_.loop.after(stops_in, [stop] { stop->set(std::nullopt); });
    Stop& given = *stop;
    std::optional<Standing> standing = co_await given;
    worker_.loop.cancel(timer);
    wanted_.erase(host_tid);
    co_return standing;
}

// If something else awaits a stop of the thread, the stop goes there, and where_stands() times out.
bool Observations::on_stop(pid_t host_tid) {
    const auto found = wanted_.find(host_tid);
    if (found == wanted_.end()) return false;
    auto standing = standing_of(host_tid);
    if (standing && standing->registers.rip >> 32 == GPR_STUB_HIGH_WORD) standing.reset();
    found->second->set(std::move(standing));
    return true;
}

Task<void> Observations::add_standings(std::vector<ObservedThread>& threads) {
    const auto until = Clock::now() + most_stopping_time;
    size_t told = 0;
    for (ObservedThread& each : threads) {
        if (!each.here || each.status.letter != 'R') continue;
        each.standing = co_await where_stands(each.pid, each.tid);
        if (each.standing && ++told > most_observed_stacks) each.standing->stack.clear();
        if (told == most_standings || Clock::now() > until) break;
    }
}

Task<void> Observations::answer(Frame frame) {
    const auto question = frame->session().getObserveQuestion();
    const std::vector<uint64_t> pages = co_await resident(question.getPid(), frame);
    FrameBuilder reply;
    auto answer = reply.session().initObserveAnswer();
    answer.setCookie(question.getCookie());
    counts_to_wire(worker_.counts_so_far(), answer.initCounts());
    Usage used;
    for (const auto& [pid, process] : worker_.processes)
        used += usage_of_process(process->host_pid);
    usage_to_wire(used, answer.initUsed());
    const LatencyHistogram& waits = worker_.pager.faults.waits();
    auto counts = answer.initFaultWaits(static_cast<unsigned>(waits.counts.size() + 1));
    for (unsigned i = 0; i < waits.counts.size(); i++) counts.set(i, waits.counts[i]);
    counts.set(static_cast<unsigned>(waits.counts.size()), waits.sum_ns);
    if (question.getThreads()) {
        auto threads = co_await threads_of(worker_, question.getPid());
        if (question.getRegisters()) co_await add_standings(threads);
        auto list = answer.initThreads(static_cast<unsigned>(threads.size()));
        for (unsigned i = 0; i < threads.size(); i++) observed_to_wire(threads[i], list[i]);
    }
    auto list = answer.initResident(static_cast<unsigned>(pages.size()));
    for (unsigned i = 0; i < pages.size(); i++) list.set(i, pages[i]);
    worker_.link.send(reply, Priority::urgent);
}

void Observations::note_ended(const Usage& used) {
    ended_ns_ += used.total_ns;
    if (tally_ && Clock::now() - written_ > between_ends) write(*tally_);
}

void Observations::note_link_closed() {
    if (tally_) write(*tally_);
}

void Observations::keep(SharedTally& tally) {
    tally_ = &tally;
    write(tally);
    worker_.loop.after(between_tallies, [this, &tally] { keep(tally); });
}

void Observations::write(SharedTally& tally) {
    written_ = Clock::now();
    uint64_t cpu = ended_ns_, threads = 0;
    for (const auto& [pid, process] : worker_.processes) {
        cpu += cpu_time_of_process(process->host_pid);
        for (const auto& [tid, thread] : process->threads) threads += thread->here() ? 1 : 0;
    }
    const LinkStats link = worker_.link.stats();
    SessionTally now;
    // The time of a process that has just ended is missing until note_ended() adds it.
    now.cpu_ns = std::max(cpu, tally.read().cpu_ns);
    now.threads = threads;
    now.arrivals = arrivals_;
    now.bytes_in = link.bytes_in;
    now.bytes_out = link.bytes_out;
    now.counts = worker_.counts_so_far();
    now.fault_waits = worker_.pager.faults.waits();
    tally.write(now);
}

}  // namespace gpr::worker
