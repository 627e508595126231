#include "tools/config_file.h"

#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/suggest.h"

namespace gpr {
namespace {

namespace fs = std::filesystem;

constexpr const char* system_config = "/etc/gpr/config.toml";

Failure wrong(const std::string& file, const toml::node& node, std::string what) {
    return fail(fmt::format("{}:{}: {}", file, node.source().begin.line, what));
}

// One value: a string or a boolean. Numbers are taken as they are written.
Result<std::string> scalar(const toml::node& node, const std::string& file,
                           const std::string& key) {
    if (const auto text = node.value_exact<std::string>()) return *text;
    if (const auto truth = node.value_exact<bool>()) return *truth ? "true" : "false";
    if (const auto number = node.value_exact<int64_t>()) return std::to_string(*number);
    return wrong(file, node, fmt::format("'{}' must be text", key));
}

// A table under a list setting is name = value for `acceptor`, as NAME=ADDR is on the command line.
Result<std::vector<std::string>> list_values(const toml::node& node, const std::string& file,
                                             const std::string& key) {
    std::vector<std::string> values;
    if (const auto* array = node.as_array()) {
        for (const toml::node& element : *array) {
            GPR_TRY(std::string value, scalar(element, file, key));
            values.push_back(std::move(value));
        }
        return values;
    }
    if (const auto* table = node.as_table(); table != nullptr && key == "acceptor") {
        for (const auto& [name, element] : *table) {
            GPR_TRY(const std::string value, scalar(element, file, key));
            values.push_back(fmt::format("{}={}", std::string_view(name), value));
        }
        return values;
    }
    GPR_TRY(std::string value, scalar(node, file, key));
    return std::vector{std::move(value)};
}

Result<std::vector<std::string>> setting_values(const Setting& setting, const toml::node& node,
                                                const std::string& file) {
    const std::string key(setting.name);
    if (setting.kind == SettingKind::list) return list_values(node, file, key);
    GPR_TRY(std::string value, scalar(node, file, key));
    if (setting.kind == SettingKind::toggle && !node.is_boolean()) {
        return wrong(file, node, fmt::format("'{}' must be true or false", key));
    }
    const bool names_a_file =
        setting.is_path && !node.is_boolean() && !value.empty() && value != "-";
    if (names_a_file) value = (fs::path(file).parent_path() / value).string();
    return std::vector{std::move(value)};
}

// For text without quotes, the library's message speaks of whatever type it guessed; this replaces
// it.
std::string explained(std::string_view description, std::string_view text, uint32_t line) {
    for (uint32_t before = 1; before < line && !text.empty(); ++before) {
        text.remove_prefix(std::min(text.size(), text.find('\n') + 1));
    }
    text = text.substr(0, text.find('\n'));
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) return std::string(description);
    std::string_view value = text.substr(equals + 1);
    value.remove_prefix(std::min(value.size(), value.find_first_not_of(" \t[")));
    const auto is_word = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/' || c == '~' || c == '.';
    };
    if (value.empty() || !is_word(value.front())) return std::string(description);
    return fmt::format("strings need quotes: \"{}\"",
                       value.substr(0, value.find_first_of(" \t,]#")));
}

Failure unknown_key(const std::string& file, const toml::node& node, const std::string& key,
                    std::span<const Setting> settings) {
    std::vector<std::string_view> names;
    for (const Setting& setting : settings) names.push_back(setting.name);
    const std::string nearest = nearest_word(key, names);
    return wrong(file, node,
                 nearest.empty()
                     ? fmt::format("no setting is called '{}'", key)
                     : fmt::format("no setting is called '{}'; did you mean '{}'?", key, nearest));
}

}  // namespace

Result<Answers> answers_from_toml(std::string_view text, const std::string& name,
                                  std::span<const Setting> settings) {
    toml::table table;
    try {
        table = toml::parse(text, name);
    } catch (const toml::parse_error& error) {
        const auto line = error.source().begin.line;
        return fail(
            fmt::format("{}:{}: {}", name, line, explained(error.description(), text, line)));
    }
    Answers answers;
    for (const auto& [key, node] : table) {
        const std::string wanted(key.str());
        const auto setting = std::find_if(settings.begin(), settings.end(),
                                          [&](const Setting& s) { return s.name == wanted; });
        if (setting == settings.end()) return unknown_key(name, node, wanted, settings);
        GPR_TRY(answers[wanted], setting_values(*setting, node, name));
    }
    return answers;
}

std::vector<std::string> default_config_paths(const Environment& environment) {
    std::vector<std::string> paths;
    const char* config_home = environment("XDG_CONFIG_HOME");
    const char* home = environment("HOME");
    if (config_home != nullptr && *config_home == '/') {
        paths.push_back(std::string(config_home) + "/gpr/config.toml");
    } else if (home != nullptr && *home != '\0') {
        paths.push_back(std::string(home) + "/.config/gpr/config.toml");
    }
    paths.emplace_back(system_config);
    return paths;
}

Result<ConfigFile> read_config(const std::string& named, const Environment& environment,
                               std::span<const Setting> settings) {
    ConfigFile config{named, {}};
    if (named.empty()) {
        for (const std::string& path : default_config_paths(environment)) {
            if (access(path.c_str(), F_OK) == 0) {
                config.path = path;
                break;
            }
        }
        if (config.path.empty()) return config;
    }
    std::ifstream stream(config.path);
    std::ostringstream text;
    if (stream) text << stream.rdbuf();
    if (!stream) return fail(errno, fmt::format("cannot read the configuration {}", config.path));
    GPR_TRY(config.answers, answers_from_toml(text.str(), config.path, settings));
    return config;
}

}  // namespace gpr
