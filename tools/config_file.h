// The configuration file: TOML, one key for each setting.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/settings.h"

namespace gpr {

// Pure: `name` is the file's name, used in messages and as the base of relative paths. Unknown keys
// and wrong types are errors that name the line.
Result<Answers> answers_from_toml(std::string_view text, const std::string& name,
                                  std::span<const Setting> settings);

struct ConfigFile {
    std::string path;  // empty: there is none
    Answers answers;
};

// If `named` is not empty, that file must exist. Otherwise the first of the default places that
// exists is read: $XDG_CONFIG_HOME/gpr/config.toml ($HOME/.config if unset), /etc/gpr/config.toml.
Result<ConfigFile> read_config(const std::string& named, const Environment& environment,
                               std::span<const Setting> settings);

std::vector<std::string> default_config_paths(const Environment& environment);

}  // namespace gpr
