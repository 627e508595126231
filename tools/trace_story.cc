#include "tools/trace_story.h"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/terminal_text.h"
#include "stub/layout.h"

namespace gpr {

namespace {

constexpr uint64_t syscall_instruction_bytes = 2;

// Of an event without parts of its own.
std::string text_of(const TracedEvent& event) {
    return event.parts.empty() ? "" : without_controls(event.parts.front().bytes);
}

// Whether the thread is in the call that has sent it this signal, whose result nobody saw.
bool has_sent(const TracedThread& thread, const TracedEvent& event) {
    const TracedCall& call = thread.call;
    const size_t signal_at = call.number == SYS_tgkill ? 2 : 1;
    const bool sends =
        call.number == SYS_kill || call.number == SYS_tkill || call.number == SYS_tgkill;
    return sends && static_cast<int64_t>(call.args.at(signal_at)) == event.about.number;
}

void add_parts(TracedCall& call, TracedEvent& event) {
    std::ranges::move(event.parts, std::back_inserter(call.parts));
}

}  // namespace

TracedThread& TraceStory::thread_of(const TracedEvent& event) {
    const auto tid = static_cast<pid_t>(event.about.tid);
    TracedThread& thread = threads_[tid];
    thread.pid = static_cast<pid_t>(event.about.pid);
    thread.tid = tid;
    // Some events are told by the other node.
    const bool is_elsewhere = event.about.kind == GPR_TRACE_EXIT ||
                              event.about.kind == GPR_TRACE_FORWARD ||
                              event.about.kind == GPR_TRACE_PAGES ||
                              (event.about.kind == GPR_TRACE_SIGNAL && thread.is_in_call);
    if (!is_elsewhere) thread.node = event.about.node;
    return thread;
}

void TraceStory::take(TracedEvent event) {
    switch (event.about.kind) {
        case GPR_TRACE_NODE: nodes_[event.about.node] = text_of(event); return;
        case GPR_TRACE_LOST: listener_.lost(event.about.node, event.about.args[0]); return;
        case GPR_TRACE_OVER: listener_.over(); return;
        case GPR_TRACE_REFUSED: listener_.refused(event.about.node, text_of(event)); return;
        default: break;
    }
    TracedThread& thread = thread_of(event);
    switch (event.about.kind) {
        case GPR_TRACE_BEGIN: begins(thread, event); return;
        case GPR_TRACE_END: ends(thread, event); return;
        case GPR_TRACE_RESUME: resumes(thread, event); return;
        case GPR_TRACE_FORWARD: thread.call.forwarded = thread.is_in_call; return;
        case GPR_TRACE_ANSWER:
            thread.call.answer = event.about.result;
            thread.call.answered_ns = event.about.time_ns;
            return;
        case GPR_TRACE_SIGNAL:
            if (thread.is_in_call && (thread.call.interrupted != 0 || has_sent(thread, event))) {
                if (thread.call.interrupted == 0) thread.told = thread.call.number;
                if (!thread.call.answer && thread.call.interrupted != 0)
                    thread.call.result = thread.call.interrupted;
                finish(thread, event.about.time_ns);
            }
            if (thread.is_in_call && thread.call.node != event.about.node) {
                // The other node's kernel has seen it during the call.
                thread.held.push_back(std::move(event));
            } else {
                listener_.signal(thread, event);
            }
            return;
        case GPR_TRACE_CROSSING:
            listener_.crossing(thread, event);
            thread.node = static_cast<unsigned>(event.about.args[1]);
            return;
        case GPR_TRACE_MISS:
        case GPR_TRACE_PAGES:
            if (!before_exec_.contains(thread.tid)) listener_.page(thread, event);
            return;
        case GPR_TRACE_EXIT:
            thread.call.interrupted = 0;
            if (thread.is_in_call) finish(thread, event.about.time_ns);
            before_exec_.erase(thread.tid);
            listener_.thread_ended(thread, event);
            threads_.erase(thread.tid);
            return;
        default: return;
    }
}

// Whether gpr has made the call in the program's place: before it was executed, or to map the stub,
// where the program gets nothing mapped.
bool TraceStory::is_own(const TracedThread& thread) {
    const TracedCall& call = thread.call;
    if (before_exec_.contains(thread.tid)) {
        if (call.number != SYS_execve) return true;
        before_exec_.erase(thread.tid);
    }
    return call.number == SYS_mmap && call.args[0] >= GPR_RESERVED_BEGIN &&
           call.args[0] < GPR_RESERVED_END && call.result &&
           static_cast<uint64_t>(*call.result) == call.args[0];
}

// A call that a filter reports begins twice: for the filter, and in the kernel, if the supervisor
// lets it run. A call that was interrupted begins again.
void TraceStory::begins(TracedThread& thread, TracedEvent& event) {
    TracedCall& call = thread.call;
    const gpr_trace_event& about = event.about;
    const bool is_same = thread.is_in_call && call.number == about.number &&
                         std::equal(call.args.begin(), call.args.end(), about.args) &&
                         call.instruction == about.ip;
    // Or it is another one with the same arguments, and the first was stopped and answered.
    const bool is_over = call.answer && call.interrupted != 0;
    if (is_same && !is_over) {
        call.interrupted = 0;
        call.answer.reset();
        call.node = about.node;
        if (call.parts.empty()) add_parts(call, event);
        return;
    }
    if (thread.is_in_call) finish(thread, about.time_ns);
    call = TracedCall{};
    call.number = about.number;
    std::copy(about.args, about.args + 6, call.args.begin());
    call.instruction = about.ip;
    call.began_ns = about.time_ns;
    call.node = about.node;
    add_parts(call, event);
    thread.is_in_call = true;
}

void TraceStory::ends(TracedThread& thread, TracedEvent& event) {
    const gpr_trace_event& about = event.about;
    TracedCall& call = thread.call;
    const bool is_the_open_one =
        thread.is_in_call && (about.number == call.number || about.number < 0);
    if (std::exchange(thread.told, std::nullopt) == about.number && !is_the_open_one) return;
    if (!is_the_open_one) {
        if (thread.is_in_call) finish(thread, about.time_ns);
        if (about.number < 0) return;
        call = TracedCall{};
        call.number = about.number;
        std::copy(about.args, about.args + 6, call.args.begin());
        call.instruction = about.ip;
        thread.is_in_call = true;
    }
    call.node = about.node;
    add_parts(call, event);
    if (is_restart(about.result)) {
        call.interrupted = about.result;
        return;
    }
    call.result = about.result;
    finish(thread, about.time_ns);
}

// A thread has left the stub. If it is behind its call, the call has been made for it; if it is at
// it, it will make it again.
void TraceStory::resumes(TracedThread& thread, const TracedEvent& event) {
    TracedCall& call = thread.call;
    if (!thread.is_in_call) return;
    call.node = event.about.node;
    if (event.about.ip == call.instruction - syscall_instruction_bytes) {
        call.interrupted = 0;
    } else if (event.about.ip == call.instruction) {
        call.result = event.about.result;
        finish(thread, event.about.time_ns);
    }
}

void TraceStory::finish(TracedThread& thread, uint64_t now_ns) {
    TracedCall& call = thread.call;
    const bool is_answered = !call.result && call.answer && !is_restart(*call.answer);
    if (is_answered) call.result = call.answer;
    if (!is_own(thread)) listener_.call_ended(thread, is_answered ? call.answered_ns : now_ns);
    thread.is_in_call = false;
    thread.call = TracedCall{};
    for (const TracedEvent& signal : std::exchange(thread.held, {})) {
        listener_.signal(thread, signal);
    }
}

std::vector<TracedThread*> TraceStory::in_calls() {
    std::vector<TracedThread*> all;
    for (auto& [tid, thread] : threads_) {
        if (thread.is_in_call) all.push_back(&thread);
    }
    std::ranges::sort(all, {}, [](const TracedThread* each) { return each->call.began_ns; });
    return all;
}

std::string TraceStory::node_name(unsigned node) const {
    const auto found = nodes_.find(node);
    return found == nodes_.end() ? fmt::format("{}", node) : found->second;
}

size_t TraceStory::longest_node_name() const {
    size_t most = 0;
    for (const auto& [node, name] : nodes_) most = std::max(most, name.size());
    return most;
}

}  // namespace gpr
