#include "monitor/node/page_events.h"

#include <utility>

#include "monitor/node/event_source.h"
#include "monitor/paging/pager.h"

namespace gpr {

namespace {

// More than that are of threads that have left, or have gone.
constexpr size_t most_waits = 4096;

bool satisfies(Presence presence, Access access) {
    return presence == Presence::exclusive ||
           (presence == Presence::shared && access == Access::read);
}

gpr_trace_event pages_event(Address first, uint64_t count, Presence presence, ContentKind content) {
    gpr_trace_event event{};
    event.kind = GPR_TRACE_PAGES;
    event.args[0] = first.value;
    event.args[1] = count;
    event.args[2] = presence == Presence::exclusive;
    event.args[3] = content == ContentKind::data   ? GPR_PAGES_DATA
                    : content == ContentKind::zero ? GPR_PAGES_ZERO
                                                   : GPR_PAGES_RIGHT;
    return event;
}

}  // namespace

PageEvents::PageEvents(EventSource& source, Pager& pager,
                       std::function<bool(pid_t pid, pid_t tid)> is_of_program)
    : source_(source), pager_(pager), is_of_program_(std::move(is_of_program)) {}

void PageEvents::begin(const gpr_trace_order& order) {
    end();
    if (order.pages) pager_.core.observer = this;
}

void PageEvents::end() {
    if (pager_.core.observer == this) pager_.core.observer = nullptr;
    waits_.clear();
}

void PageEvents::on_miss(const Fragment& fragment, Address page, PageKey key, Access access,
                         Tid tid) {
    const pid_t pid = fragment.pid();
    if (!is_of_program_(pid, static_cast<pid_t>(tid))) return;
    if (waits_.size() >= most_waits) waits_.clear();
    Wait& wait = waits_[tid];
    // A thread that was woken for nothing, or interrupted, faults again.
    if (wait.key == key && wait.access == access && wait.since_ns != 0) return;
    wait = {pid, page, key, access, trace_clock()};
    gpr_trace_event event{};
    event.kind = GPR_TRACE_MISS;
    event.args[0] = page.value;
    event.args[1] = access == Access::write;
    source_.note(pid, static_cast<pid_t>(tid), event);
}

void PageEvents::on_pages(const PageRun& run, Presence presence, ContentKind content) {
    bool is_awaited = false;
    for (auto& [tid, wait] : waits_) {
        const bool comes = wait.since_ns != 0 && wait.key.object == run.object &&
                           wait.key.index - run.first < run.count &&
                           satisfies(presence, wait.access);
        if (!comes) continue;
        is_awaited = true;
        const uint64_t before = wait.key.index - run.first;
        gpr_trace_event event =
            pages_event({wait.page.value - before * page_size}, run.count, presence, content);
        event.args[4] = trace_clock() - std::exchange(wait.since_ns, 0);
        event.args[5] = wait.page.value;
        source_.note(wait.pid, static_cast<pid_t>(tid), event);
    }
    if (is_awaited) return;
    const auto place = pager_.core.place_of(run[0]);
    if (!place) return;
    const pid_t pid = place->fragment->pid();
    source_.note(pid, pid, pages_event(place->address, run.count, presence, content));
}

void PageEvents::on_present(PageKey key) {
    for (const auto& [tid, wait] : waits_) {
        if (wait.since_ns == 0 || wait.key != key) continue;
        return on_pages({key.object, key.index, 1}, pager_.core.agent.presence(key),
                        ContentKind::none);
    }
}

}  // namespace gpr
