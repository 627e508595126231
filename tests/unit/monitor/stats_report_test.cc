#include "monitor/home/stats_report.h"

#include <doctest/doctest.h>

using gpr::StatsReport;

namespace {

StatsReport lasting(double wall_s, uint64_t cpu_ns) {
    StatsReport report;
    report.wall_s = wall_s;
    report.acceptors.resize(1);
    report.acceptors[0].cpu.total_ns = cpu_ns;
    return report;
}

bool advises(const StatsReport& report, const char* text) {
    return report.advice().find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("names of any bytes do not keep statistics from being told") {
    StatsReport report = lasting(1, 0);
    report.acceptors[0].name = "a\xff";
    report.functions["f\xfe"] = {};
    CHECK(report.json().find("f\xef\xbf\xbd") != std::string::npos);
}

TEST_CASE("who lost nothing is not advised") {
    CHECK(lasting(10, 9'000'000'000).advice().empty());
    CHECK(lasting(3600, 0).advice().empty());  // it slept
    StatsReport quick = lasting(0.2, 0);
    quick.calls.home = 100'000;
    CHECK(quick.advice().empty());
}

TEST_CASE("system calls that took the time are told, however slow the link is") {
    StatsReport report = lasting(8, 100'000'000);
    report.calls.home = 4'500;
    CHECK(advises(report, "4,500 system calls were carried home, 562 a second"));
    report.acceptors[0].cpu.total_ns = 7'000'000'000;  // it computed meanwhile
    CHECK(report.advice().empty());
    report.calls.home = 40'000;
    CHECK(advises(report, "40,000 system calls"));
    StatsReport patient = lasting(60, 100'000'000);
    patient.calls.home = 1'200;
    CHECK(patient.advice().empty());
}

TEST_CASE("time spent waiting for memory is told first") {
    StatsReport report = lasting(8, 100'000'000);
    report.calls.home = 4'500;
    report.acceptors[0].pages.waited_ns = 5'000'000'000;
    CHECK(advises(report, "62 % of the time threads waited for memory"));
}
