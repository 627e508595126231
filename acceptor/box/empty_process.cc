#include "acceptor/box/empty_process.h"

#include <sys/mman.h>

#include <fstream>
#include <sstream>

namespace gpr {
namespace {

// "5581f000-5582f000 r-xp 00000000 fe:00 123 /path, up to the end of the line"
Result<InheritedMapping> parse_mapping(const std::string& line) {
    std::istringstream in(line);
    InheritedMapping mapping;
    char dash = 0;
    std::string permissions, offset, device, inode;
    in >> std::hex >> mapping.range.begin.value >> dash >> mapping.range.end.value >> permissions >>
        offset >> device >> inode;
    if (!in || dash != '-' || permissions.size() != 4) {
        return fail("cannot understand the maps line '" + line + "'");
    }
    std::getline(in >> std::ws, mapping.name);
    if (permissions[0] == 'r') mapping.protection |= PROT_READ;
    if (permissions[1] == 'w') mapping.protection |= PROT_WRITE;
    if (permissions[2] == 'x') mapping.protection |= PROT_EXEC;
    return mapping;
}

}  // namespace

Result<std::vector<InheritedMapping>> read_inherited_mappings(pid_t host_pid) {
    const auto path = fmt::format("/proc/{}/maps", host_pid);
    std::ifstream file(path);
    if (!file) return fail(errno, "cannot open " + path);
    std::vector<InheritedMapping> mappings;
    for (std::string line; std::getline(file, line);) {
        GPR_TRY(auto mapping, parse_mapping(line));
        mappings.push_back(std::move(mapping));
    }
    if (mappings.empty()) return fail(ESRCH, "the process of " + path + " is gone");
    return mappings;
}

}  // namespace gpr
