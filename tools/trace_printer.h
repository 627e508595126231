// A trace as text, line by line.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/call_text.h"
#include "tools/process_symbols.h"
#include "tools/trace_story.h"

namespace gpr {

enum class TraceTime { none, second, microsecond, epoch, since_last };

struct TraceStyle {
    TraceTime time = TraceTime::none;
    bool call_times = false;  // how long each call took
    bool file_names = false;  // of descriptors
    bool whole = false;       // every member of structures
    bool quiet = false;       // without ends of threads
    bool stacks = false;
    size_t string_limit = 32;
};

class TracePrinter {
public:
    // What code a process has; of a process that is gone, nothing.
    using Symbols = std::function<const ProcessSymbols*(pid_t pid, bool again)>;

    TracePrinter(std::FILE* out, const TraceStyle& style, const KernelTypes* types,
                 Symbols symbols);

    void call(const TraceStory& story, const TracedThread& thread, uint64_t now_ns);
    // Threads in calls that are not shown yet; since: only if they were in it before that time.
    void show_begun(TraceStory& story);
    void signal(const TraceStory& story, const TracedThread& thread, const TracedEvent& event);
    void crossing(const TraceStory& story, const TracedThread& thread, const TracedEvent& event);
    // It waits for a page, or pages have come.
    void page(const TraceStory& story, const TracedThread& thread, const TracedEvent& event);
    void end(const TraceStory& story, const TracedThread& thread, const TracedEvent& event);
    // False if nobody reads any more.
    bool flush();

private:
    std::string prefix(const TraceStory& story, const TracedThread& thread, bool forwarded,
                       uint64_t time_ns);
    std::string time_text(uint64_t time_ns);
    [[nodiscard]] std::string code_at(pid_t pid, uint64_t address);
    [[nodiscard]] std::string page_at(pid_t pid, uint64_t address);
    std::string stack_of(const TracedThread& thread);
    [[nodiscard]] CallText::FileName names_for(pid_t pid);
    void note_files(const TracedThread& thread);

    std::FILE* out_;
    TraceStyle style_;
    CallText words_;
    Symbols symbols_;
    int64_t wall_clock_ns_;  // to be added to times of events
    uint64_t last_ns_ = 0;
    std::map<std::pair<pid_t, uint64_t>, std::string> files_;  // by process and descriptor
};

}  // namespace gpr
