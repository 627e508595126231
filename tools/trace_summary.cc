#include "tools/trace_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace gpr {

void TraceSummary::add(const TracedCall& call, uint64_t now_ns) {
    Row& row = rows_[call_name(call.number)];
    row.calls++;
    if (call.result && *call.result < 0 && *call.result >= -4095) row.errors++;
    if (call.began_ns != 0 && now_ns > call.began_ns) row.took_ns += now_ns - call.began_ns;
}

std::string TraceSummary::text() const {
    std::vector<std::pair<std::string, Row>> sorted(rows_.begin(), rows_.end());
    std::ranges::stable_sort(sorted, std::greater{},
                             [](const auto& each) { return each.second.took_ns; });
    Row all;
    for (const auto& [name, row] : sorted) {
        all.calls += row.calls;
        all.errors += row.errors;
        all.took_ns += row.took_ns;
    }
    const auto line = [&](const Row& row, const std::string& name) {
        const double share = all.took_ns == 0 ? 0
                                              : 100.0 * static_cast<double>(row.took_ns) /
                                                    static_cast<double>(all.took_ns);
        return fmt::format("{:6.2f} {:11.6f} {:11} {:9} {:>9} {}\n", share,
                           static_cast<double>(row.took_ns) / 1e9,
                           row.calls == 0 ? 0 : row.took_ns / 1000 / row.calls, row.calls,
                           row.errors == 0 ? "" : std::to_string(row.errors), name);
    };
    const std::string rule =
        "------ ----------- ----------- --------- --------- ----------------\n";
    std::string text = "% time     seconds  usecs/call     calls    errors syscall\n" + rule;
    for (const auto& [name, row] : sorted) text += line(row, name);
    return text + rule + line(all, "total");
}

}  // namespace gpr
