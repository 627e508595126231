// Counts as Prometheus reads them: its text format, version 0.0.4.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/latency.h"

namespace gpr {

class MetricsText {
public:
    using Labels = std::vector<std::pair<std::string_view, std::string>>;

    // All samples of a name follow each other, so a name is begun once. Those of counters end in
    // _total, and times are in seconds.
    void begin_counter(std::string_view name, std::string_view help);
    void begin_gauge(std::string_view name, std::string_view help);
    void begin_histogram(std::string_view name, std::string_view help);
    // Of what was begun last.
    void sample(const Labels& labels, double value);
    void sample(const Labels& labels, uint64_t value);
    void sample(const Labels& labels, const LatencyHistogram& value);

    [[nodiscard]] const std::string& text() const { return text_; }

private:
    void begin(std::string_view name, std::string_view help, std::string_view type);
    void line(std::string_view suffix, const Labels& labels, const std::string& value);

    std::string name_;
    std::string text_;
};

}  // namespace gpr
