#include "tools/common_settings.h"

#include <algorithm>

#include "base/suggest.h"
#include "tools/commands.h"
#include "tools/config_file.h"

namespace gpr {
namespace {

constexpr std::string_view prefix = "GPR_";

// All commands share the file, so it may hold settings of any of them.
std::vector<Setting> config_settings() {
    std::vector<Setting> settings;
    for (const CommandSpec* spec : {&exec_spec(), &acceptor_spec()}) {
        for (const Setting& setting : spec->settings) {
            if (setting.name != config_setting.name) settings.push_back(setting);
        }
    }
    return settings;
}

}  // namespace

Result<GatheredSettings> gather_settings(const CommandSpec& spec, const Answers& flags,
                                         const Environment& environment) {
    GPR_TRY(const Answers variables, answers_from_environment(spec.settings, environment));
    const std::string named = Settings({flags, variables}).text(config_setting.name);
    GPR_TRY(const ConfigFile config, read_config(named, environment, config_settings()));
    return GatheredSettings{Settings({flags, variables, config.answers}), config.path,
                            Settings({config.answers}).list(acceptor_setting.name)};
}

std::string address_of(const std::string& word, const GatheredSettings& gathered) {
    for (const std::string& known : gathered.known_acceptors) {
        if (known.starts_with(word + "=")) return known.substr(word.size() + 1);
    }
    return word;
}

std::vector<std::string> acceptors_of(const GatheredSettings& gathered) {
    std::vector<std::string> acceptors = gathered.settings.list(acceptor_setting.name);
    for (std::string& acceptor : acceptors) {
        const std::string address = address_of(acceptor, gathered);
        if (address != acceptor) acceptor += "=" + address;
    }
    return acceptors;
}

std::vector<std::string> remarks_on_environment(const char* const* environment) {
    std::vector<std::string> known = {environment_name(config_setting.name),
                                      environment_name(json_setting.name)};
    for (const Setting& setting : config_settings())
        known.push_back(environment_name(setting.name));
    const std::vector<std::string_view> names(known.begin(), known.end());
    std::vector<std::string_view> ends;
    for (const std::string_view each : names) ends.push_back(each.substr(prefix.size()));
    std::vector<std::string> remarks;
    for (; *environment != nullptr; ++environment) {
        const std::string_view entry(*environment);
        const std::string name(entry.substr(0, entry.find('=')));
        const bool is_ours = name.starts_with(prefix);
        if (!is_ours || std::find(names.begin(), names.end(), name) != names.end()) continue;
        // The common prefix says nothing about similarity.
        const std::string nearest =
            nearest_word(std::string_view(name).substr(prefix.size()), ends);
        remarks.push_back(
            nearest.empty() ? fmt::format("the variable {} is not one of gpr's and means nothing; "
                                          "'gpr help exec' lists the options they are named after",
                                          name)
                            : fmt::format("the variable {} is not one of gpr's and means nothing; "
                                          "did you mean {}{}?",
                                          name, prefix, nearest));
    }
    return remarks;
}

}  // namespace gpr
