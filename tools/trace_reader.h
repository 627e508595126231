// Reads a trace from a session until it ends, and writes it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "tools/sessions.h"
#include "tools/trace_options.h"
#include "tools/trace_printer.h"
#include "tools/trace_story.h"
#include "tools/trace_summary.h"

namespace gpr {

class TraceReader {
public:
    // All references must outlive it. counts: only a table at the end.
    TraceReader(Fd stream, std::FILE* out, const TraceChoice& choice, const TraceStyle& style,
                bool counts);
    TraceReader(const TraceReader&) = delete;
    TraceReader& operator=(const TraceReader&) = delete;

    // Whose code is named.
    void use_symbols_of(const ListedSession& session) { session_ = session; }
    void begin_with(pid_t program) {
        program_ = program;
        story_.ignore_until_exec(program);
    }
    // SIGINT and the like end the trace, and not the session.
    void end_at_signals();
    // Until the session ends, or a signal does.
    Result<> run();

private:
    struct Code {
        std::optional<ProcessSymbols> symbols;
        std::chrono::steady_clock::time_point asked_again_from;
    };
    TraceStory::Listener listener();
    [[nodiscard]] bool shows(const TracedEvent& event) const;
    const ProcessSymbols* symbols_of(pid_t pid, bool again);
    Result<> take_what_is_complete(std::string& unread);

    Fd stream_;
    std::FILE* out_;
    const TraceChoice& choice_;
    bool counts_;
    bool is_over_ = false;
    std::optional<KernelTypes> types_;
    std::string no_types_;  // why they are not known
    std::optional<ListedSession> session_;
    pid_t program_ = 0;
    std::map<pid_t, std::unique_ptr<Code>> code_;
    TracePrinter printer_;
    TraceSummary summary_;
    TraceStory story_;
};

}  // namespace gpr
