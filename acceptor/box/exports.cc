#include "acceptor/box/exports.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "monitor/rules/path_rules.h"

namespace gpr {
namespace {

namespace fs = std::filesystem;

constexpr const char* root_folder = "/";

bool has_wildcard(const std::string& glob) { return literal_part(glob) != glob; }

bool has_detour(const std::string& path) {
    const fs::path parts(path);
    return std::any_of(parts.begin(), parts.end(),
                       [](const fs::path& part) { return part == ".."; });
}

bool is_exported(const std::string& path, const std::vector<std::string>& exports) {
    return std::any_of(exports.begin(), exports.end(),
                       [&](const std::string& glob) { return covers(glob, path); });
}

Failure not_exported(const RemotePath& rule, const std::string& path) {
    return fail(
        fmt::format("path rule '{}': this acceptor does not show {}; its administrator can, "
                    "with 'gpr acceptor --export {}'",
                    rule.glob, path, path));
}

// Whether a file of this host matches. Where programs and libraries are, folders are large and
// seldom change; everywhere else the kernel is asked each time.
bool has_match(const std::string& glob, FolderNames& folders) {
    const std::string folder = literal_part(glob);
    const std::string pattern = glob.size() > folder.size() ? glob.substr(folder.size() + 1) : "";
    if (!folder.starts_with("/usr/") || pattern.find('/') != std::string::npos) {
        return !files_matching(glob).empty();
    }
    const auto& names = folders.of(folder);
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) == 0;
    });
}

// The target of a link decides, not its name.
std::string real_path(const std::string& path) {
    std::error_code missing;
    auto real = fs::canonical(path, missing);
    return missing ? std::string() : real.string();
}

class Plan {
public:
    Plan(const std::vector<std::string>& exports, const std::vector<std::string>& hidden)
        : exports_(exports), hidden_(hidden) {}

    Result<> add(const RemotePath& rule) {
        if (!rule.glob.starts_with('/') || has_detour(rule.glob)) {
            return fail(
                fmt::format("path rule '{}' is not an absolute path without detours", rule.glob));
        }
        if (fs::path(rule.glob).lexically_normal() == root_folder) {
            return fail(
                fmt::format("path rule '{}' is for the whole file tree, with /proc, /dev "
                            "and the program itself; name the folders in it",
                            rule.glob));
        }
        if (!rule.target.empty()) return add_one(rule, rule.glob, rule.target);
        if (!has_wildcard(rule.glob)) return add_one(rule, rule.glob, rule.glob);
        const std::string directory = literal_part(rule.glob);
        if (directory == root_folder) return add_of_root(rule);
        // Matching files may come and go, so the whole directory is shown.
        if (is_exported(directory, exports_) && !hides_below(real_of(directory))) {
            return add_one(rule, directory, directory);
        }
        for (const std::string& path : files_matching(rule.glob)) {
            GPR_CHECK(add_one(rule, path, path));
        }
        return {};
    }

    std::vector<SandboxMount> finish() {
        // A directory comes before what is below it; of two mounts at one place the first rule's
        // wins.
        std::stable_sort(
            mounts_.begin(), mounts_.end(),
            [](const SandboxMount& a, const SandboxMount& b) { return a.place < b.place; });
        // Skip what its parent already shows at the same place.
        std::vector<SandboxMount> needed;
        for (SandboxMount& mount : mounts_) {
            const bool shown =
                std::any_of(needed.begin(), needed.end(), [&](const SandboxMount& above) {
                    if (mount.place == above.place) return true;
                    return mount.place == mount.source && above.place == above.source &&
                           mount.place.starts_with(above.place + "/");
                });
            if (!shown) needed.push_back(std::move(mount));
        }
        return needed;
    }

private:
    // The box has its own root directory, so only files that exist now are shown. It has the same
    // links as this host's root (/lib to usr/lib): their targets are shown instead.
    Result<> add_of_root(const RemotePath& rule) {
        for (const std::string& path : files_matching(rule.glob)) {
            const std::string place = fs::is_symlink(path) ? real_of(path) : path;
            if (!place.empty()) GPR_CHECK(add_one(rule, place, place));
        }
        return {};
    }

    Result<> add_one(const RemotePath& rule, const std::string& place, const std::string& source) {
        const std::string real = real_of(source);
        if (real.empty()) {
            if (rule.when_missing || has_wildcard(rule.glob)) return {};
            return fail(fmt::format("path rule '{}': this acceptor has no {}", rule.glob, source));
        }
        if (!is_exported(source, exports_) || !is_exported(real, exports_)) {
            return not_exported(rule, real);
        }
        if (is_hidden(real)) {
            if (has_wildcard(rule.glob)) return {};
            return fail(
                fmt::format("path rule '{}': the session does not get {}: it asked for other "
                            "devices, or another session has it alone ('gpr devices' says which)",
                            rule.glob, real));
        }
        show(place, source, real, real);
        return {};
    }

    // Shows a directory entry by entry if something below it is hidden. Links that lead out of
    // `top` are not shown.
    void show(const std::string& place, const std::string& source, const std::string& real,
              const std::string& top) {
        if (!hides_below(real)) {
            mounts_.push_back({place, source});
            return;
        }
        std::error_code gone;
        for (const auto& entry : fs::directory_iterator(source, gone)) {
            const std::string inner = real_path(entry.path());
            const auto name = entry.path().filename().string();
            if (!inner.starts_with(top + "/") || is_hidden(inner)) continue;
            show(place + "/" + name, entry.path(), inner, top);
        }
    }

    // Rules name the same folders.
    std::string real_of(const std::string& path) {
        auto [known, is_new] = real_.try_emplace(path);
        if (is_new) known->second = real_path(path);
        return known->second;
    }

    [[nodiscard]] bool hides_below(const std::string& directory) const {
        return std::any_of(hidden_.begin(), hidden_.end(), [&](const std::string& node) {
            return node.starts_with(directory + "/");
        });
    }

    [[nodiscard]] bool is_hidden(const std::string& real) const {
        return std::find(hidden_.begin(), hidden_.end(), real) != hidden_.end();
    }

    const std::vector<std::string>& exports_;
    const std::vector<std::string>& hidden_;
    std::vector<SandboxMount> mounts_;
    std::map<std::string, std::string> real_;  // paths without links, as far as they are known
};

}  // namespace

std::vector<std::string> default_exports() {
    return {"/usr",
            "/lib",
            "/lib32",
            "/lib64",
            "/opt/rocm*",
            "/opt/amdgpu*",
            "/etc/OpenCL",
            "/etc/vulkan",
            "/dev/kvm",
            "/dev/dri",
            "/dev/kfd",
            "/dev/nvidia*",
            "/proc/driver/nvidia*",
            "/sys/devices/virtual/kfd"};
}

Result<std::vector<SandboxMount>> plan_mounts(const std::vector<RemotePath>& wanted,
                                              const std::vector<std::string>& exports,
                                              const std::vector<std::string>& hidden) {
    Plan plan(exports, hidden);
    for (const RemotePath& rule : wanted) GPR_CHECK(plan.add(rule));
    return plan.finish();
}

std::vector<std::string> standby_profiles(const std::vector<RemotePath>& wanted,
                                          const std::vector<std::string>& exports,
                                          const std::vector<std::string>& hidden,
                                          FolderNames& folders) {
    std::map<std::string, std::vector<RemotePath>> profiles;
    for (const RemotePath& rule : wanted) {
        if (!rule.standby.empty()) profiles[rule.standby].push_back(rule);
    }
    std::vector<std::string> found;
    for (auto& [name, rules] : profiles) {
        if (!plan_mounts(rules, exports, hidden)) continue;
        // A directory is shown for a pattern also if nothing in it matches.
        std::erase_if(rules, [&](const RemotePath& rule) {
            return rule.when_missing || (has_wildcard(rule.glob) && !has_match(rule.glob, folders));
        });
        const auto mounts = plan_mounts(rules, exports, hidden);
        if (mounts && !mounts->empty()) found.push_back(name);
    }
    return found;
}

void read_ahead(FolderNames& folders) { folders.of("/usr/lib/x86_64-linux-gnu"); }

}  // namespace gpr
