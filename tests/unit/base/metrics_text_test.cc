#include "base/metrics_text.h"

#include <doctest/doctest.h>

using gpr::LatencyHistogram;
using gpr::MetricsText;

TEST_CASE("a latency is counted where it belongs") {
    LatencyHistogram histogram;
    histogram.note(10'000);  // bounds are included
    histogram.note(10'001);
    histogram.note(60'000'000'000);
    CHECK(histogram.counts[0] == 1);
    CHECK(histogram.counts[1] == 1);
    CHECK(histogram.counts.back() == 1);
    CHECK(histogram.sum_ns == 60'000'020'001);
}

TEST_CASE("counts are told as Prometheus reads them") {
    MetricsText text;
    text.begin_counter("gpr_x_total", "What it is.");
    text.sample({}, uint64_t{7});
    text.sample({{"node", "a\"b\\c\nd"}, {"way", "in"}}, 0.5);
    CHECK(text.text() ==
          "# HELP gpr_x_total What it is.\n# TYPE gpr_x_total counter\ngpr_x_total 7\n"
          "gpr_x_total{node=\"a\\\"b\\\\c\\nd\",way=\"in\"} 0.5\n");
}

TEST_CASE("a histogram is cumulative, and ends with all") {
    LatencyHistogram histogram;
    histogram.note(20'000);
    histogram.note(20'000'000'000);
    MetricsText text;
    text.begin_histogram("gpr_t", "T.");
    text.sample({{"node", "home"}}, histogram);
    const std::string& all = text.text();
    CHECK(all.find("gpr_t_bucket{node=\"home\",le=\"1e-05\"} 0\n") != std::string::npos);
    CHECK(all.find("gpr_t_bucket{node=\"home\",le=\"2.5e-05\"} 1\n") != std::string::npos);
    CHECK(all.find("gpr_t_bucket{node=\"home\",le=\"10\"} 1\n") != std::string::npos);
    CHECK(all.find("gpr_t_bucket{node=\"home\",le=\"+Inf\"} 2\n") != std::string::npos);
    CHECK(all.find("gpr_t_sum{node=\"home\"} 20.00002\n") != std::string::npos);
    CHECK(all.find("gpr_t_count{node=\"home\"} 2\n") != std::string::npos);
}
