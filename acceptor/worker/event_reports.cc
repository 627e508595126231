#include "acceptor/worker/event_reports.h"

#include <cstdio>
#include <string>

#include "acceptor/worker/worker.h"
#include "base/file_text.h"
#include "monitor/node/traced_calls.h"
#include "syscall/table.h"

namespace gpr::worker {

namespace {

constexpr uint64_t most_queued = 16 << 20;

}  // namespace

// What happened here is told before any message that it may have caused.
EventReports::EventReports(Worker& worker)
    : worker_(worker),
      source_(worker.loop, TracedIds::own,
              {[this](const std::string& events) { send(events); },
               [this] { return worker_.link.queued_bytes() < most_queued; }}),
      pages_(source_, worker.pager,
             [this](pid_t pid, pid_t tid) { return worker_.find_thread(pid, tid) != nullptr; }) {
    worker_.link.before_frame([this] { source_.flush(); });
}

void EventReports::on_order(const Frame& frame) {
    const auto data = frame->session().getTraceOrder();
    source_.end();
    pages_.end();
    if (data.size() == 0) return;
    auto order = trace_order_from(std::as_bytes(std::span(data.begin(), data.size())));
    if (!order) {
        worker_.link.close("its trace order is malformed");
        return;
    }
    source_.begin(*order, offset_of_clock());
    pages_.begin(*order);
}

// The box has home's clocks where time namespaces exist.
int64_t EventReports::offset_of_clock() const {
    if (!worker_.sandbox.has_time_namespace()) return 0;
    const std::string offsets =
        text_of(fmt::format("/proc/{}/timens_offsets", worker_.sandbox.init_pid()));
    long seconds = 0, nanoseconds = 0;
    if (std::sscanf(offsets.c_str(), "monotonic %ld %ld", &seconds, &nanoseconds) != 2) return 0;
    return seconds * 1'000'000'000 + nanoseconds;
}

void EventReports::send(const std::string& events) {
    FrameBuilder frame;
    frame.session().setTraceEvents();
    frame.add_raw(std::as_bytes(std::span(events)));
    worker_.link.send(frame, gpr::Priority::urgent);
}

// execve discards the old memory, so its strings are read now. Pages that are not on this node are
// left out.
void EventReports::note_call(const RemoteThread& thread, const Notification& n) {
    if (!source_.wants(n.number)) return;
    const Row* row = find_row(n.number);
    EventParts parts;
    if (row && row->never_returns()) {
        const RemoteMemory& memory = thread.process->fragment->memory();
        parts = strings_of_call(*row, n.args, [&](uint64_t from, void* to, size_t bytes) {
            return memory.read({from}, to, bytes);
        });
    }
    const pid_t pid = thread.process->pid;
    source_.note(pid, thread.tid, call_begun(n.number, n.args, n.instruction_pointer), parts);
}

// A thread may be stopped in its call when home's answer comes.
void EventReports::note_answer(wire::CallReply::Reader reply) {
    if (!source_.is_on()) return;
    gpr_trace_event event{};
    event.kind = GPR_TRACE_ANSWER;
    event.result = reply.getResult();
    source_.note(reply.getPid(), reply.getTid(), event);
}

void EventReports::note_crossing(wire::Crossing::Reader crossing) {
    if (!source_.is_on() || !source_.order().crossings) return;
    source_.note(crossing.getPid(), crossing.getTid(),
                 thread_crossed(crossing, directory_node, worker_.self));
}

}  // namespace gpr::worker
