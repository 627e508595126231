#include "monitor/home/statistics.h"

#include "base/log.h"
#include "monitor/home/failures.h"
#include "monitor/home/futexes.h"
#include "monitor/home/home.h"
#include "monitor/home/stats_report.h"
#include "monitor/node/usage.h"

namespace gpr::home {

void Statistics::begin() {
    started_at_ns_ = static_cast<uint64_t>(Clock::now().time_since_epoch().count());
}

void Statistics::write_stats(int exit_status) {
    if (!home_.options.stats.enabled) return;
    StatsReport told = report();
    told.exit_status = exit_status;
    home_.outputs.report(told.words(), told.json());
}

StatsReport Statistics::report() const {
    uint64_t now = static_cast<uint64_t>(Clock::now().time_since_epoch().count());
    PagerStats pages = home_.pager.stats();
    StatsReport report;
    report.wall_s = static_cast<double>(now - started_at_ns_) / 1e9;
    report.crossings = home_.stats.crossings;
    report.images = home_.stats.images;
    report.rested = home_.policy.rests();
    report.drawn_home = home_.stats.drawn_home;
    report.drawn_away = home_.stats.drawn_away;
    report.calls_watched = home_.futexes.news().watched();
    report.futex_wakes = home_.stats.futex_wakes;
    report.home_cpu = home_.stats.home_cpu;
    report.home = pages;
    home_.acceptors.each([&](const RemoteNode& node) {
        const RemoteCounts& counts = node.counts;
        report.calls += counts.told.calls;
        report.acceptors.push_back({home_.options.acceptors.at(node.id - 1u).name, counts.arrivals,
                                    counts.cpu, counts.told.pages, node.link_stats().bytes_in,
                                    node.link_stats().bytes_out});
    });
    report.functions = home_.stats.functions;
    return report;
}

// A rule that never matched is a mistake, or meant for another program.
void Statistics::tell_idle_rules() const {
    const std::vector<std::string> idle = home_.rule_use.idle();
    if (idle.empty() || !home_.failures.reason().empty()) return;
    home_.outputs.tell(fmt::format("matched nothing: {}", fmt::join(idle, ", ")));
}

}  // namespace gpr::home
