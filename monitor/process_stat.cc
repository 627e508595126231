#include "monitor/process_stat.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace gpr {

std::vector<std::string> stat_fields(const std::string& folder) {
    std::ifstream in(folder + "/stat");
    std::string line, field;
    std::getline(in, line);
    size_t name_end = line.rfind(')');
    std::vector<std::string> fields;
    if (name_end == std::string::npos) return fields;
    std::istringstream rest(line.substr(name_end + 1));
    while (rest >> field) fields.push_back(field);
    return fields;
}

pid_t parent_of(pid_t pid) {
    std::vector<std::string> fields = stat_fields(fmt::format("/proc/{}", pid));
    return fields.size() < 2 ? 0 : std::atoi(fields[1].c_str());
}

}  // namespace gpr
