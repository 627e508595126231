#include "acceptor/daemon/host_look.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstring>

#include "acceptor/box/privileges.h"
#include "acceptor/cache/content_cache.h"
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

// Without a folder that nobody has asked for, sessions only begin more slowly.
Result<std::string> usable_cache(const AcceptorOptions& options) {
    if (options.cache_folder.empty()) return std::string();
    const auto prepared = prepare_content_folder(options.cache_folder);
    if (prepared) prune_contents(options.cache_folder, options.cache_bytes);
    if (prepared) return options.cache_folder;
    if (options.cache_wanted) return tl::make_unexpected(prepared.error());
    spdlog::warn("{}; no contents of files are kept for later sessions (--cache)",
                 prepared.error().message());
    return std::string();
}

uint64_t host_memory() { return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * page_size; }

}  // namespace gpr
