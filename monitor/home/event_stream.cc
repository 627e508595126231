#include "monitor/home/event_stream.h"

#include <csignal>

#include "base/log.h"
#include "monitor/home/home.h"
#include "monitor/node/traced_calls.h"
#include "monitor/tracee/ptrace.h"
#include "stub/layout.h"

namespace gpr::home {

namespace {

constexpr size_t siginfo_bytes = 48;  // with all that any signal has

uint64_t count_events(std::string_view events) {
    uint64_t count = 0;
    while (events.size() >= sizeof(gpr_trace_event)) {
        gpr_trace_event event{};
        std::memcpy(&event, events.data(), sizeof event);
        events.remove_prefix(event.size);
        count++;
    }
    return count;
}

}  // namespace

EventStream::EventStream(Home& home)
    : home_(home),
      source_(home.loop, TracedIds::of_tracer,
              {[this](const std::string& events) { give(events); }, [] { return true; }}),
      pages_(source_, home.pager, [this](pid_t pid, pid_t tid) {
          const HomeThread* thread = home_.find_thread(pid, tid);
          return thread && !thread->helper;
      }) {}

Result<> EventStream::begin(const gpr_trace_order& order, Reader reader) {
    if (reader_) return fail("somebody traces this session already; it has one reader at a time");
    reader_ = std::move(reader);
    has_room_ = true;
    dropped_ = 0;
    tell_nodes();
    source_.begin(order, 0);
    pages_.begin(order);
    FrameBuilder frame;
    fill_in_order(frame);
    home_.acceptors.send(frame);
    spdlog::info("somebody traces this session");
    return {};
}

void EventStream::fill_in_order(FrameBuilder& frame) const {
    const gpr_trace_order& order = source_.order();
    frame.session().setTraceOrder({reinterpret_cast<const uint8_t*>(&order), sizeof order});
}

void EventStream::on_new_acceptor(const RemoteNode& node) const {
    if (!reader_) return;
    FrameBuilder frame;
    fill_in_order(frame);
    node.link.send(frame, Priority::urgent);
}

// Their names, which begin the stream.
void EventStream::tell_nodes() {
    std::string events;
    gpr_trace_event named{};
    named.kind = GPR_TRACE_NODE;
    named.time_ns = trace_clock();
    append_event(events, named, std::string("home"));
    const size_t count = std::min<size_t>(home_.acceptors.size(), home_.options.acceptors.size());
    for (size_t i = 0; i < count; i++) {
        named.node = static_cast<uint8_t>(i + 1);
        const AcceptorAddress& acceptor = home_.options.acceptors[i];
        append_event(events, named, acceptor.name);
    }
    give(events);
}

void EventStream::end() {
    if (!std::exchange(reader_, nullptr)) return;
    source_.end();
    pages_.end();
    FrameBuilder frame;
    frame.session().setTraceOrder({});
    home_.acceptors.send(frame);
    spdlog::info("nobody traces this session any more");
}

std::string EventStream::lost_events() {
    std::string event;
    if (dropped_ == 0) return event;
    gpr_trace_event lost{};
    lost.kind = GPR_TRACE_LOST;
    lost.time_ns = trace_clock();
    lost.args[0] = std::exchange(dropped_, 0);
    append_event(event, lost);
    return event;
}

std::string EventStream::last_events() {
    std::string events = lost_events();
    gpr_trace_event over{};
    over.kind = GPR_TRACE_OVER;
    over.time_ns = trace_clock();
    append_event(events, over);
    return events;
}

void EventStream::give(std::string_view events) {
    if (!reader_ || events.empty()) return;
    if (!has_room_) {
        // An empty message asks whether there is room again.
        if (!reader_({})) {
            dropped_ += count_events(events);
            return;
        }
        reader_(lost_events());
    }
    has_room_ = reader_(events);
}

void EventStream::on_events(RemoteNode& node, const Frame& frame) {
    const std::span<const std::byte> raw = frame->raw();
    if (!are_events(raw)) {
        node.link.close("it sends events that are none");
        return;
    }
    if (!reader_) return;
    source_.flush();
    std::string events(reinterpret_cast<const char*>(raw.data()), raw.size());
    for (size_t at = 0; at < events.size();) {
        gpr_trace_event event{};
        std::memcpy(&event, events.data() + at, sizeof event);
        events[at + offsetof(gpr_trace_event, node)] = static_cast<char>(node.id);
        at += event.size;
    }
    give(events);
}

void EventStream::note_call(const HomeThread& thread, uint64_t number, const uint64_t* args,
                            uint64_t instruction_pointer) {
    const bool in_stub = instruction_pointer >> 32 == GPR_STUB_HIGH_WORD;
    if (in_stub || !source_.wants(number)) return;
    source_.note(thread.process->pid, thread.tid, call_begun(number, args, instruction_pointer));
}

void EventStream::on_frame(RemoteNode& node, const Frame& frame) {
    auto session = frame->session();
    if (session.isTraceEvents()) return on_events(node, frame);
    if (!reader_) return;
    if (session.isCall()) {
        auto call = session.getCall();
        gpr_trace_event event{};
        event.kind = GPR_TRACE_FORWARD;
        if (source_.wants(call.getNumber())) source_.note(call.getPid(), call.getTid(), event);
    } else if (session.isCrossing() && source_.order().crossings) {
        auto crossing = session.getCrossing();
        source_.note(crossing.getPid(), crossing.getTid(),
                     thread_crossed(crossing, node.id, directory_node));
    }
}

void EventStream::note_signal(const HomeThread& thread, int signal) {
    if (!reader_ || !source_.order().signals || !thread.remote()) return;
    const uint64_t bit = uint64_t{1} << (signal - 1);
    const bool is_caught = trace::signal_set(thread.process->pid, "SigCgt:") & bit;
    const bool is_ignored = trace::signal_set(thread.process->pid, "SigIgn:") & bit;
    const bool by_default = !is_caught && (signal == SIGCHLD || signal == SIGCONT ||
                                           signal == SIGURG || signal == SIGWINCH);
    auto info = trace::signal_info(thread.tid);
    if (!info || !(is_ignored || by_default)) return;
    gpr_trace_event event{};
    event.kind = GPR_TRACE_SIGNAL;
    event.number = signal;
    EventPart part;
    part.bytes.assign(reinterpret_cast<const char*>(&*info), siginfo_bytes);
    part.about.whole = siginfo_bytes;
    source_.note(thread.process->pid, thread.tid, event, {part});
}

void EventStream::note_end(const HomeThread& thread, WaitStatus status) {
    if (!reader_ || thread.helper) return;
    gpr_trace_event event{};
    event.kind = GPR_TRACE_EXIT;
    event.result =
        status.kind == WaitStatus::Kind::exited ? (status.value & 0xff) << 8 : status.value & 0x7f;
    source_.note(thread.process->pid, thread.tid, event);
}

}  // namespace gpr::home
