#include "monitor/launch/progress.h"

#include <fmt/format.h>

namespace gpr {
namespace {

constexpr std::chrono::milliseconds between_looks{100};
constexpr unsigned looks_per_second = 10;
// In looks: after a longer pause a transfer is over.
constexpr unsigned most_pauses = 2;
// Less than this in transit is the normal traffic of a running program.
constexpr uint64_t least_under_way = 16 << 10;

std::string amount(uint64_t bytes) {
    return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

Progress::Progress(Loop& loop, Link& link, SideWriter& user, std::function<bool()> waits_for_pages)
    : loop_(loop), link_(link), user_(user), waits_for_pages_(std::move(waits_for_pages)) {
    if (user_.has_terminal()) timer_ = loop_.after(between_looks, [this] { look(); });
}

Progress::~Progress() {
    if (timer_ != 0) loop_.cancel(timer_);
}

void Progress::look() {
    timer_ = loop_.after(between_looks, [this] { look(); });
    const LinkStats now = link_.stats();
    const bool sends = link_.queued_bytes() + link_.unacknowledged_bytes() >= least_under_way;
    const bool fetches = waits_for_pages_() && now.bytes_in >= seen_.bytes_in + least_under_way;
    pauses_ = sends || fetches ? 0 : pauses_ + 1;
    if (looks_ == 0 && pauses_ == 0) first_ = seen_;
    seen_ = now;
    if (pauses_ > most_pauses) {
        if (looks_ > 0) user_.doing("");
        looks_ = 0;
    } else if (looks_ > 0 || pauses_ == 0) {
        if (looks_++ % looks_per_second == 0) tell();
    }
}

void Progress::tell() {
    const uint64_t sent = seen_.bytes_out - first_.bytes_out;
    const uint64_t fetched = seen_.bytes_in - first_.bytes_in;
    const double seconds = static_cast<double>(looks_) / looks_per_second;
    const auto rate = static_cast<uint64_t>(static_cast<double>(sent + fetched) / seconds);
    user_.doing(fmt::format("waiting for the link to {}: {} sent, {} fetched, {}/s",
                            link_.peer_name(), amount(sent), amount(fetched), amount(rate)));
}

}  // namespace gpr
