#include "monitor/stats_report.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace gpr {

void StatsReport::write(const std::string& path) const {
    if (path.empty()) {
        std::string table = fmt::format(
            "gpr: exit status {}, {:.3f} s; {} crossings; system calls: {} home\n"
            "gpr: node      cpu s    faults  pages in pages out\n"
            "gpr: 0     {:9.3f} {:9} {:9} {:9}\n"
            "gpr: 1     {:9.3f} {:9} {:9} {:9}\n",
            exit_status, wall_s, crossings, calls_home, home_cpu_s, home.faults, home.pages_in,
            home.pages_out, remote_cpu_s, remote.faults, remote.pages_in, remote.pages_out);
        [[maybe_unused]] ssize_t told = ::write(STDERR_FILENO, table.data(), table.size());
        return;
    }
    auto node = [](int id, double cpu_s, const PagerStats& p, uint64_t in, uint64_t out) {
        return nlohmann::json{{"node", id},           {"cpu_s", cpu_s},
                              {"faults", p.faults},   {"pages_in", p.pages_in},
                              {"pages_out", p.pages_out}, {"bytes_in", in},
                              {"bytes_out", out}};
    };
    nlohmann::json out{
        {"exit_status", exit_status},
        {"wall_s", wall_s},
        {"crossings", crossings},
        {"syscalls",
         {{"native", calls_native}, {"fd_owner", calls_fd_owner}, {"home", calls_home}}},
        {"nodes", nlohmann::json::array({node(0, home_cpu_s, home, bytes_in, bytes_out),
                                         node(1, remote_cpu_s, remote, bytes_out, bytes_in)})}};
    std::string partial = path + ".partial";
    {
        std::ofstream file(partial);
        file << out.dump(2) << "\n";
    }
    if (std::rename(partial.c_str(), path.c_str()) != 0) {
        std::string line = fmt::format("gpr: cannot write the statistics to {}: {}\n", path,
                                       std::strerror(errno));
        [[maybe_unused]] ssize_t told = ::write(STDERR_FILENO, line.data(), line.size());
    }
}

}  // namespace gpr
