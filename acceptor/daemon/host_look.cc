#include "acceptor/daemon/host_look.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstring>

#include "acceptor/box/privileges.h"
#include "base/address.h"
#include "base/kernel_features.h"
#include "monitor/rules/path_rules.h"

namespace gpr {

std::vector<std::string> present_features() {
    std::vector<std::string> names;
    const auto features = KernelFeatures::probe();
    for (const auto* feature : features.all()) {
        if (feature->present) names.emplace_back(feature->name);
    }
    for (const auto* feature : features.lacking()) {
        spdlog::warn("this host lacks {} ({}); {}", feature->name, feature->needed_for,
                     feature->cure);
    }
    return names;
}

// A missing file may appear later, so it is no error; but usually it is a mistake.
void warn_of_missing_exports(const std::vector<std::string>& exports) {
    for (const std::string& path : exports) {
        if (!files_matching(path).empty()) continue;
        spdlog::warn("--export {} gives nothing: there is no such file here now", path);
    }
}

void warn_of_abstract_sockets() {
    const int error = probe_leaving_abstract_sockets();
    if (error == 0) return;
    spdlog::warn(
        "sessions with this host's network can reach its abstract unix sockets; to keep "
        "them out takes Landlock of Linux 6.12: {}",
        std::strerror(error));
}

uint64_t host_memory() { return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * page_size; }

}  // namespace gpr
