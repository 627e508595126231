#include "tools/profiles.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/suggest.h"
#include "tools/config_file.h"

namespace gpr {
namespace {

namespace fs = std::filesystem;

constexpr std::array profile_settings = {
    Setting{"description", SettingKind::text, "TEXT", "what it is for, in one line"},
    Setting{"split", SettingKind::list, "RULE", "its rules"},
};

Result<Profile> read_profile(const std::string& name, std::string_view toml,
                             const std::string& source) {
    GPR_TRY(Answers answers, answers_from_toml(toml, source, profile_settings));
    const Settings settings({answers});
    Profile profile{name, settings.text("description"), settings.list("split"), source};
    if (profile.rules.empty()) {
        return fail(fmt::format("{}: a profile needs rules: split = [\"RULE\", ...]", source));
    }
    return profile;
}

// A name becomes part of a path, so it must not leave the folder.
bool is_profile_name(std::string_view name) {
    return !name.empty() && name.front() != '.' && name.find('/') == std::string_view::npos;
}

}  // namespace

std::vector<std::string> profile_folders(const Environment& environment) {
    std::vector<std::string> folders;
    for (const std::string& config : default_config_paths(environment)) {
        folders.push_back((fs::path(config).parent_path() / "profiles").string());
    }
    folders.emplace_back(GPR_PROFILE_FOLDER);
    return folders;
}

Result<Profile> Profiles::find(const std::string& name) const {
    for (const std::string& folder : folders_) {
        const std::string file = fmt::format("{}/{}.toml", folder, name);
        std::error_code error;
        if (!is_profile_name(name) || !fs::exists(file, error)) continue;
        std::ifstream stream(file);
        std::ostringstream text;
        if (stream) text << stream.rdbuf();
        if (!stream) return fail(errno, fmt::format("cannot read the profile {}", file));
        return read_profile(name, text.str(), file);
    }
    for (const ShippedProfile& profile : shipped_profiles()) {
        if (profile.name != name) continue;
        return read_profile(name, profile.toml, std::string(shipped_source));
    }
    const std::vector<std::string> known = names();
    const std::string nearest =
        nearest_word(name, std::vector<std::string_view>(known.begin(), known.end()));
    return fail(fmt::format("no profile is called '{}'; {}there are {}", name,
                            nearest.empty() ? "" : fmt::format("did you mean '{}'? ", nearest),
                            fmt::join(known, ", ")));
}

std::vector<std::string> Profiles::names() const {
    std::set<std::string> names;
    for (const std::string& folder : folders_) {
        std::error_code missing;
        for (const auto& entry : fs::directory_iterator(folder, missing)) {
            const fs::path& path = entry.path();
            const std::string name = path.stem().string();
            if (path.extension() == ".toml" && is_profile_name(name)) names.insert(name);
        }
    }
    for (const ShippedProfile& profile : shipped_profiles()) names.emplace(profile.name);
    return {names.begin(), names.end()};
}

}  // namespace gpr
