#include "base/metrics_text.h"

#include <fmt/format.h>

namespace gpr {

namespace {

// As the format wants a label's value.
std::string quoted(std::string_view value) {
    std::string text = "\"";
    for (const char c : value) {
        if (c == '\\' || c == '"') text += '\\';
        if (c == '\n') {
            text += "\\n";
        } else {
            text += c;
        }
    }
    return text + '"';
}

}  // namespace

void MetricsText::begin(std::string_view name, std::string_view help, std::string_view type) {
    name_ = name;
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void MetricsText::begin_counter(std::string_view name, std::string_view help) {
    begin(name, help, "counter");
}

void MetricsText::begin_gauge(std::string_view name, std::string_view help) {
    begin(name, help, "gauge");
}

void MetricsText::begin_histogram(std::string_view name, std::string_view help) {
    begin(name, help, "histogram");
}

void MetricsText::line(std::string_view suffix, const Labels& labels, const std::string& value) {
    text_ += fmt::format("{}{}", name_, suffix);
    std::string_view separator = "{";
    for (const auto& [label, of] : labels) {
        text_ += fmt::format("{}{}={}", separator, label, quoted(of));
        separator = ",";
    }
    text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", value);
}

void MetricsText::sample(const Labels& labels, double value) {
    line("", labels, fmt::format("{}", value));
}

void MetricsText::sample(const Labels& labels, uint64_t value) {
    line("", labels, fmt::format("{}", value));
}

void MetricsText::sample(const Labels& labels, const LatencyHistogram& value) {
    uint64_t so_far = 0;
    for (size_t i = 0; i < value.counts.size(); i++) {
        so_far += value.counts[i];
        Labels with_bound = labels;
        const bool is_last = i == LatencyHistogram::bounds_ns.size();
        with_bound.emplace_back(
            "le",
            is_last ? "+Inf"
                    : fmt::format("{}", static_cast<double>(LatencyHistogram::bounds_ns[i]) / 1e9));
        line("_bucket", with_bound, fmt::format("{}", so_far));
    }
    line("_sum", labels, fmt::format("{}", static_cast<double>(value.sum_ns) / 1e9));
    line("_count", labels, fmt::format("{}", so_far));
}

}  // namespace gpr
