// Asks a session what `gpr view` shows: what `gpr stat` and `gpr threads` tell, often, and what
// `gpr maps` and `gpr pages` tell of a process, less often, with symbols.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/process_symbols.h"
#include "tools/sessions.h"
#include "tools/view_board.h"

namespace gpr {

// When to ask again: after `least`, and so that the session spends little of its time on answers.
class AskingPace {
public:
    using Clock = std::chrono::steady_clock;

    explicit AskingPace(std::chrono::milliseconds least) : least_(least) {}
    [[nodiscard]] bool is_due(Clock::time_point now) const { return now >= due_; }
    void answered(Clock::time_point began, Clock::time_point now);
    void not_answered(Clock::time_point now) { due_ = now + least_; }

private:
    std::chrono::milliseconds least_;
    Clock::time_point due_{};
};

class SessionPicture {
public:
    SessionPicture(const ListedSession& session, ViewBoard& board)
        : session_(session), board_(board) {}

    // Asks what is due, and puts it on the board. False: the session has ended.
    bool look();

private:
    // Symbols of a process, while its mappings are the same.
    struct Names {
        nlohmann::json mappings;
        std::optional<ProcessSymbols> symbols;
        std::map<uint64_t, nlohmann::json> code;
        std::map<uint64_t, std::vector<std::string>> variables;
    };

    Result<nlohmann::json> ask_now() const;
    Result<nlohmann::json> ask_memory(pid_t pid);
    void know_names(pid_t pid, const nlohmann::json& mappings);
    [[nodiscard]] nlohmann::json code_at(uint64_t address);
    void name_pages(nlohmann::json& pages, uint64_t page_bytes);

    const ListedSession& session_;
    ViewBoard& board_;
    AskingPace idle_pace_{std::chrono::milliseconds(1000)};
    AskingPace now_pace_{std::chrono::milliseconds(500)};
    AskingPace memory_pace_{std::chrono::milliseconds(1500)};
    pid_t names_of_ = 0;
    Names names_;
};

}  // namespace gpr
