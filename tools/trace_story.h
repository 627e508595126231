// Puts the events of a trace together: calls that begin and end, on whichever node. A thread's
// events come in its order; what gpr does with a call in between (a stop, a crossing, the stub) is
// not seen by who listens.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/traced_call.h"

namespace gpr {

struct TracedThread {
    pid_t pid = 0, tid = 0;
    unsigned node = 0;
    bool is_in_call = false;
    TracedCall call;  // the one that it is in
    // The call that has been told before its end, because the thread has sent itself a signal by
    // it.
    std::optional<int64_t> told;
    std::vector<TracedEvent> held;  // signals that came to another node meanwhile
};

class TraceStory {
public:
    struct Listener {
        // The thread's call has ended, or its result will not be seen.
        std::function<void(const TracedThread& thread, uint64_t now_ns)> call_ended;
        std::function<void(const TracedThread& thread, const TracedEvent& event)> signal;
        std::function<void(const TracedThread& thread, const TracedEvent& event)> crossing;
        // It waits for a page, or pages have come.
        std::function<void(const TracedThread& thread, const TracedEvent& event)> page;
        std::function<void(const TracedThread& thread, const TracedEvent& event)> thread_ended;
        std::function<void(unsigned node, uint64_t count)> lost;
        std::function<void()> over;  // that was all of the session
        std::function<void(unsigned node, const std::string& why)> refused;
    };
    explicit TraceStory(Listener listener) : listener_(std::move(listener)) {}

    // A process whose calls are gpr's until it executes the program.
    void ignore_until_exec(pid_t pid) { before_exec_.insert(pid); }
    void take(TracedEvent event);
    // Threads that are in a call, those first that have been for longest.
    std::vector<TracedThread*> in_calls();
    [[nodiscard]] std::string node_name(unsigned node) const;
    [[nodiscard]] size_t longest_node_name() const;

private:
    void begins(TracedThread& thread, TracedEvent& event);
    void ends(TracedThread& thread, TracedEvent& event);
    void resumes(TracedThread& thread, const TracedEvent& event);
    bool is_own(const TracedThread& thread);
    void finish(TracedThread& thread, uint64_t now_ns);
    TracedThread& thread_of(const TracedEvent& event);

    Listener listener_;
    std::map<pid_t, TracedThread> threads_;
    std::map<unsigned, std::string> nodes_;
    std::set<pid_t> before_exec_;
};

}  // namespace gpr
