#include "tools/view_board.h"

#include <fmt/format.h>

#include <utility>

namespace gpr {

namespace {

// Pages look twice a second, unless their tab is hidden.
constexpr std::chrono::seconds viewer_stays{4};
// A viewer may name anything as a process.
constexpr size_t most_processes = 16;

}  // namespace

std::string ViewBoard::answer(pid_t pid, uint64_t known) {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    looked_at_ = now;
    std::erase_if(memories_,
                  [&](const auto& each) { return now - each.second.wanted > viewer_stays; });
    if (pid == 0) pid = process_;
    if (memories_.size() < most_processes || memories_.contains(pid)) memories_[pid].wanted = now;
    const auto found = memories_.find(pid);
    const bool is_new = found != memories_.end() && found->second.number > known;
    return fmt::format(
        R"({{"version":1,"ended":{},"error":{},"pid":{},"now":{},"number":{},"memory":{}}})",
        has_ended_, error_, pid, now_, is_new ? found->second.number : known,
        is_new ? found->second.text : "null");
}

bool ViewBoard::is_watched() const {
    const std::lock_guard lock(mutex_);
    return Clock::now() - looked_at_ < viewer_stays;
}

std::optional<pid_t> ViewBoard::next_process() {
    const std::lock_guard lock(mutex_);
    if (memories_.empty()) return std::nullopt;
    auto next = memories_.upper_bound(last_process_);
    if (next == memories_.end()) next = memories_.begin();
    return last_process_ = next->first;
}

void ViewBoard::put_now(std::string now) {
    const std::lock_guard lock(mutex_);
    now_ = std::move(now);
    error_ = "null";
}

void ViewBoard::put_memory(pid_t pid, std::string memory) {
    const std::lock_guard lock(mutex_);
    const auto found = memories_.find(pid);
    if (found == memories_.end()) return;
    found->second.text = std::move(memory);
    found->second.number = ++last_number_;
}

void ViewBoard::put_error(std::string error) {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
}

void ViewBoard::put_end() {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
}

}  // namespace gpr
