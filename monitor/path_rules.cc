#include "monitor/path_rules.h"

#include <fnmatch.h>

#include <filesystem>

#include "monitor/exec_options.h"

namespace gpr {

bool covers(const std::string& glob, std::string path) {
    while (fnmatch(glob.c_str(), path.c_str(), FNM_PATHNAME) != 0) {
        size_t slash = path.rfind('/');
        if (slash == std::string::npos || slash == 0) return false;
        path.resize(slash);
    }
    return true;
}

std::vector<RemotePath> path_rules_of(const std::vector<SplitRule>& rules) {
    std::vector<RemotePath> paths;
    for (const SplitRule& rule : rules) {
        if (!is_about_files(rule.kind)) continue;
        paths.push_back({rule.pattern, rule.target, rule.kind == SplitKind::missing});
    }
    return paths;
}

PathVerdict PathRules::owner_of(std::string_view path) const {
    if (path.empty() || path.front() != '/') return {};
    // Only the text: links of either host are followed by whoever opens it.
    std::string plain = std::filesystem::path(path).lexically_normal().string();
    if (plain.size() > 1 && plain.back() == '/') plain.pop_back();
    for (size_t i = 0; i < rules_.size(); i++) {
        if (!covers(rules_[i].glob, plain)) continue;
        return {rules_[i].when_missing ? PathOwner::whoever : PathOwner::acceptor, i};
    }
    return {};
}

std::string literal_part(const std::string& glob) {
    size_t wildcard = glob.find_first_of("*?[\\");
    if (wildcard == std::string::npos) return glob;
    size_t slash = glob.rfind('/', wildcard);
    return slash == std::string::npos || slash == 0 ? "/" : glob.substr(0, slash);
}

}  // namespace gpr
