// The one list of what can be set: every setting is a flag (--token-file), an environment variable
// (GPR_TOKEN_FILE) and a key of the configuration file (token-file). Flag beats environment beats
// file, setting by setting; a list is taken whole from the first source that has it.
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
    list,            // --split RULE, again and again; commas in the environment, arrays in the file
    toggle,          // --plain
    toggle_or_text,  // --stats or --stats=FILE; a value never is the next argument
    attached_text,   // --record=FILE; the same, and there must be a value
};

// Of the help.
enum class Section { usual, diagnosis };

struct Setting {
    std::string_view name;
    SettingKind kind;
    std::string_view value_name;
    std::string_view help;
    bool is_path = false;  // relative ones in a configuration file start at that file's folder
    char letter = 0;       // of the short flag: 'n' for -n; 0: it has none
    Section section = Section::usual;
};

constexpr Setting for_diagnosis(Setting setting) {
    setting.section = Section::diagnosis;
    return setting;
}

// What one source says, by setting name. A toggle has one value: "true" or "false".
using Answers = std::map<std::string, std::vector<std::string>, std::less<>>;

// "token-file" to "GPR_TOKEN_FILE".
std::string environment_name(std::string_view setting);

using Environment = std::function<const char*(const char*)>;
Result<Answers> answers_from_environment(std::span<const Setting> settings,
                                         const Environment& environment);

// "1", "true", "yes", "on" and their opposites; nothing else.
bool is_true(std::string_view text);
bool is_false(std::string_view text);

// The sources in order of their rank; the first that has a setting decides it.
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
