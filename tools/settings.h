// The single list of what can be set. Every setting is a flag (--token-file), an environment
// variable (GPR_TOKEN_FILE) and a key of the configuration file (token-file). For each setting, the
// flag overrides the environment, which overrides the file; a list is taken as a whole from one
// source.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpr {

enum class SettingKind {
    text,            // --log FILE
    list,            // --split RULE, repeatable; commas in the environment, arrays in the file
    toggle,          // --plain
    toggle_or_text,  // --stats or --stats=FILE; the value is never the next argument
    attached_text,   // --record=FILE; likewise, but the value is required
};

// Sections of the help text.
enum class Section { usual, diagnosis };

struct Setting {
    std::string_view name;
    SettingKind kind;
    std::string_view value_name;
    std::string_view help;
    bool is_path = false;  // a relative path in a configuration file starts at that file's folder
    char letter = 0;       // of the short flag, such as 'n' for -n; 0: none
    Section section = Section::usual;
    std::string_view details = "";  // what the manual page says beyond `help`
};

constexpr Setting with_details(Setting setting, std::string_view details) {
    setting.details = details;
    return setting;
}

constexpr Setting for_diagnosis(Setting setting) {
    setting.section = Section::diagnosis;
    return setting;
}

// The values from one source, by setting name. A toggle has one value: "true" or "false".
using Answers = std::map<std::string, std::vector<std::string>, std::less<>>;

// Turns "token-file" into "GPR_TOKEN_FILE".
std::string environment_name(std::string_view setting);

using Environment = std::function<const char*(const char*)>;
Result<Answers> answers_from_environment(std::span<const Setting> settings,
                                         const Environment& environment);

// Whether it is "1", "true", "yes" or "on", and the opposites.
bool is_true(std::string_view text);
bool is_false(std::string_view text);

// Combines sources in order of rank; the first that has a setting decides it.
class Settings {
public:
    explicit Settings(const std::vector<Answers>& sources);

    [[nodiscard]] bool has(std::string_view name) const { return answers_.contains(name); }
    [[nodiscard]] std::string text(std::string_view name, std::string_view otherwise = "") const;
    [[nodiscard]] std::vector<std::string> list(std::string_view name) const;
    [[nodiscard]] bool toggle(std::string_view name) const;

private:
    Answers answers_;
};

}  // namespace gpr
