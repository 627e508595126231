#include "tools/common_settings.h"

#include "tools/acceptor_command.h"
#include "tools/config_file.h"
#include "tools/exec_command.h"

namespace gpr {
namespace {

// A file is shared by every command, so it may hold settings of all of them.
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
    return GatheredSettings{Settings({flags, variables, config.answers}), config.path};
}

}  // namespace gpr
