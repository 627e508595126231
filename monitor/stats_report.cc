#include "monitor/stats_report.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace gpr {

namespace {
double seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }
}  // namespace

void StatsReport::write(const std::string& path) const {
    if (path.empty()) {
        std::string table = fmt::format(
            "gpr: exit status {}, {:.3f} s; {} crossings; system calls: {} home\n"
            "gpr: node      cpu s    faults  pages in pages out\n"
            "gpr: 0     {:9.3f} {:9} {:9} {:9}\n"
            "gpr: 1     {:9.3f} {:9} {:9} {:9}\n",
            exit_status, wall_s, crossings, calls_home, seconds(home_cpu.total_ns), home.faults,
            home.pages_in, home.pages_out, seconds(remote_cpu.total_ns), remote.faults,
            remote.pages_in, remote.pages_out);
        for (const auto& [name, use] : functions) {
            table += fmt::format("gpr: {}: {} crossings, {} of them calls\n", name, use.crossings,
                                 use.calls);
        }
        [[maybe_unused]] ssize_t told = ::write(STDERR_FILENO, table.data(), table.size());
        return;
    }
    auto node = [](int id, Usage cpu, const PagerStats& p, uint64_t in, uint64_t out) {
        return nlohmann::json{{"node", id},
                              {"cpu_s", seconds(cpu.total_ns)},
                              {"user_s", seconds(cpu.user_ns)},
                              {"faults", p.faults},
                              {"pages_in", p.pages_in},
                              {"pages_out", p.pages_out},
                              {"bytes_in", in},
                              {"bytes_out", out}};
    };
    nlohmann::json out{
        {"exit_status", exit_status},
        {"wall_s", wall_s},
        {"crossings", crossings},
        {"gravity", {{"home", drawn_home}, {"away", drawn_away}}},
        {"syscalls",
         {{"native", calls_native},
          {"fd_owner", calls_fd_owner},
          {"by_rule", calls_by_rule},
          {"home", calls_home}}},
        {"futexes", {{"watched", calls_watched}, {"wakes_told", futex_wakes}}},
        {"nodes", nlohmann::json::array({node(0, home_cpu, home, bytes_in, bytes_out),
                                         node(1, remote_cpu, remote, bytes_out, bytes_in)})}};
    out["functions"] = nlohmann::json::object();
    for (const auto& [name, use] : functions) {
        out["functions"][name] = {{"crossings", use.crossings}, {"calls", use.calls}};
    }
    std::string partial = path + ".partial";
    {
        std::ofstream file(partial);
        file << out.dump(2) << "\n";
    }
    if (std::rename(partial.c_str(), path.c_str()) != 0) {
        std::string line =
            fmt::format("gpr: cannot write the statistics to {}: {}\n", path, std::strerror(errno));
        [[maybe_unused]] ssize_t told = ::write(STDERR_FILENO, line.data(), line.size());
    }
}

}  // namespace gpr
