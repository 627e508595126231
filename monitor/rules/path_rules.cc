#include "monitor/rules/path_rules.h"

#include <fnmatch.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "monitor/rules/exec_options.h"

namespace gpr {

namespace {

// A glob for all files of a directory: using one does not show that the profile is needed.
bool is_catch_all(const std::string& glob) { return glob.ends_with("/*"); }

// Whether nothing has to be resolved in it, except links.
bool has_no_detours(std::string_view path) {
    return path.find("//") == std::string_view::npos && path.find("/.") == std::string_view::npos &&
           (path.size() == 1 || path.back() != '/');
}

// How everything begins that the glob covers.
std::string_view beginning_of(const std::string& glob) {
    return std::string_view(glob).substr(0, glob.find_first_of("*?[\\"));
}

}  // namespace

bool covers(const std::string& glob, std::string path) {
    while (fnmatch(glob.c_str(), path.c_str(), FNM_PATHNAME) != 0) {
        size_t slash = path.rfind('/');
        if (slash == std::string::npos || slash == 0) return false;
        path.resize(slash);
    }
    return true;
}

std::vector<RemotePath> path_rules_of(const std::vector<SplitRule>& rules, unsigned node) {
    std::vector<RemotePath> paths;
    for (const SplitRule& rule : rules) {
        if (!is_about_files(rule.kind)) continue;
        bool is_its = node == 0 || rule.node_id == node;
        paths.push_back({is_its ? rule.pattern : "", rule.target, rule.kind == SplitKind::missing,
                         rule.standby ? rule.profile : ""});
    }
    return paths;
}

std::vector<uint8_t> nodes_of_paths(const std::vector<SplitRule>& rules) {
    std::vector<uint8_t> nodes;
    for (const SplitRule& rule : rules) {
        if (is_about_files(rule.kind)) nodes.push_back(rule.node_id);
    }
    return nodes;
}

PathRules::PathRules(std::vector<RemotePath> rules, std::vector<RootLink> links)
    : rules_(std::move(rules)), links_(std::move(links)) {
    for (RemotePath& rule : rules_) {
        if (!rule.glob.empty()) rule.glob = plain(rule.glob);
    }
}

bool PathRules::empty() const {
    return std::all_of(rules_.begin(), rules_.end(),
                       [](const RemotePath& rule) { return rule.glob.empty(); });
}

void keep_standby(std::vector<RemotePath>& rules, const std::vector<std::string>& profiles) {
    for (RemotePath& rule : rules) {
        bool kept = rule.standby.empty() ||
                    std::find(profiles.begin(), profiles.end(), rule.standby) != profiles.end();
        if (!kept) rule.glob.clear();
    }
}

void PathRules::use(size_t number) {
    const std::string profile = rules_.at(number).standby;
    gpr::keep_standby(rules_, {profile});
    for (RemotePath& rule : rules_) rule.standby.clear();
}

std::optional<size_t> PathRules::standby_rule(std::string_view profile) const {
    for (size_t i = 0; i < rules_.size(); i++) {
        if (!profile.empty() && !rules_[i].glob.empty() && rules_[i].standby == profile) return i;
    }
    return std::nullopt;
}

// Resolves links in the root directory, and removes dots and double slashes. Deeper links are
// resolved when the file is opened.
std::string PathRules::plain(std::string_view path) const {
    size_t begin = path.find_first_not_of('/');
    if (begin == std::string_view::npos) return "/";
    size_t end = std::min(path.find('/', begin), path.size());
    std::string text(path);
    for (const RootLink& link : links_) {
        if (path.substr(begin, end - begin) != link.name) continue;
        text = link.target + std::string(path.substr(end));
        break;
    }
    if (has_no_detours(text)) return text;
    text = std::filesystem::path(text).lexically_normal().string();
    if (text.size() > 1 && text.back() == '/') text.pop_back();
    return text;
}

std::vector<RootLink> read_root_links() {
    namespace fs = std::filesystem;
    std::vector<RootLink> links;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator("/", ignored)) {
        if (!entry.is_symlink(ignored)) continue;
        auto target = fs::read_symlink(entry.path(), ignored);
        if (!ignored) {
            links.push_back({entry.path().filename().string(), (fs::path("/") / target).string()});
        }
    }
    return links;
}

bool PathRules::may_match(const RemotePath& rule) {
    const bool is_no_sign = !rule.standby.empty() && rule.when_missing && is_catch_all(rule.glob);
    return !rule.glob.empty() && !is_no_sign;
}

std::vector<std::string> PathRules::beginnings() const {
    std::vector<std::string> all;
    for (const RemotePath& rule : rules_) {
        if (!may_match(rule)) continue;
        const std::string beginning(beginning_of(rule.glob));
        all.push_back(beginning);
        for (const RootLink& link : links_) {  // /lib/... is a name of /usr/lib/...
            const auto target = std::filesystem::path(link.target).lexically_normal().string();
            if (beginning.starts_with(target)) {
                all.push_back("/" + link.name + beginning.substr(target.size()));
            } else if (target.starts_with(beginning)) {
                all.push_back("/" + link.name);
            }
        }
    }
    return all;
}

PathVerdict PathRules::owner_of(std::string_view path) const {
    if (path.empty() || path.front() != '/') return {};
    const std::string name = plain(path);
    PathVerdict weak;
    for (size_t i = 0; i < rules_.size(); i++) {
        const RemotePath& rule = rules_[i];
        if (!may_match(rule) || !name.starts_with(beginning_of(rule.glob))) continue;
        if (!covers(rule.glob, name)) continue;
        const auto owner = rule.when_missing ? PathOwner::whoever : PathOwner::acceptor;
        const PathVerdict verdict{owner, i, !rule.standby.empty()};
        if (!verdict.standby) return verdict;
        // A rule for a profile's own files is a stronger sign than a rule for files that it can
        // also use.
        if (!rule.when_missing) return verdict;
        if (weak.owner == PathOwner::home) weak = verdict;
    }
    return weak;
}

std::vector<std::string> files_matching(const std::string& pattern) {
    glob_t found{};
    std::vector<std::string> paths;
    if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
        paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    }
    globfree(&found);
    return paths;
}

std::string literal_part(const std::string& glob) {
    size_t wildcard = glob.find_first_of("*?[\\");
    if (wildcard == std::string::npos) return glob;
    size_t slash = glob.rfind('/', wildcard);
    return slash == std::string::npos || slash == 0 ? "/" : glob.substr(0, slash);
}

}  // namespace gpr
