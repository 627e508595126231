#include "tools/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <list>

#include "base/suggest.h"

namespace gpr {
namespace {

bool is_flag(std::string_view word) { return word.size() > 1 && word.front() == '-'; }

std::string flag_name(const Setting& setting) { return fmt::format("--{}", setting.name); }

std::string short_flag(const Setting& setting) { return {'-', setting.letter}; }

// CLI11 writes to these, so they must not move while it parses.
struct FlagValue {
    const Setting* setting;
    CLI::Option* option = nullptr;
    std::string text;
    std::vector<std::string> list;
};

void add_flag(CLI::App& app, FlagValue& value) {
    const std::string letter = value.setting->letter == 0 ? "" : "," + short_flag(*value.setting);
    const std::string name = flag_name(*value.setting) + letter;
    switch (value.setting->kind) {
        case SettingKind::list:
            // One value per flag: a vector would take all the words that follow.
            value.option = app.add_option(name, value.list)->allow_extra_args(false);
            return;
        case SettingKind::text: value.option = app.add_option(name, value.text); break;
        default: value.option = app.add_flag(name, value.text); break;
    }
    value.option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

Result<> take_answer(const FlagValue& value, Answers& answers) {
    if (value.option->count() == 0) return {};
    const Setting& setting = *value.setting;
    if (setting.kind == SettingKind::toggle && !is_true(value.text) && !is_false(value.text)) {
        return fail(fmt::format("{}={} is neither true nor false", flag_name(setting), value.text));
    }
    // CLI11 gives a flag without a value this one.
    if (setting.kind == SettingKind::attached_text && is_true(value.text)) {
        return fail(fmt::format("{} needs a value behind '=': {}", flag_name(setting),
                                shown_flag(setting)));
    }
    answers[std::string(setting.name)] =
        setting.kind == SettingKind::list ? value.list : std::vector{value.text};
    return {};
}

// Rewrites messages in which CLI11 speaks of its own types.
std::string explained(std::string_view what) {
    const size_t missing = what.find(": 1 required TEXT missing");
    return missing == std::string_view::npos
               ? std::string(what)
               : fmt::format("{} needs a value", what.substr(0, missing));
}

Failure unknown_flag(const CommandSpec& spec, const std::string& word) {
    std::vector<std::string> names = {"--help"};
    for (const Setting& setting : spec.settings) names.push_back(flag_name(setting));
    const std::string typed = word.substr(0, word.find('='));
    const std::string nearest =
        nearest_word(typed, std::vector<std::string_view>(names.begin(), names.end()));
    return fail(fmt::format("gpr {} has no option {}; {}", spec.name, typed,
                            nearest.empty() ? fmt::format("see 'gpr {} --help'", spec.name)
                                            : fmt::format("did you mean {}?", nearest)));
}

// CLI11 returns all the words that it does not know.
Result<> take_words(const CommandSpec& spec, std::vector<std::string> rest, ParsedCommand& parsed) {
    bool only_words = false;
    for (std::string& word : rest) {
        if (!only_words && word == "--") {
            only_words = true;
        } else if (!only_words && is_flag(word)) {
            return unknown_flag(spec, word);
        } else {
            parsed.words.push_back(std::move(word));
        }
    }
    if (parsed.words.size() > spec.most_words) {
        return fail(fmt::format("gpr {} does not know what to do with '{}'; see 'gpr {} --help'",
                                spec.name, parsed.words[spec.most_words], spec.name));
    }
    return {};
}

}  // namespace

ProgramCut cut_program(std::span<const Setting> settings,
                       const std::vector<std::string>& arguments) {
    size_t i = 0;
    while (i < arguments.size() && is_flag(arguments[i]) && arguments[i] != "--") {
        const bool has_value_behind =
            std::any_of(settings.begin(), settings.end(), [&](const Setting& setting) {
                return takes_next_word(setting) &&
                       (arguments[i] == flag_name(setting) || arguments[i] == short_flag(setting));
            });
        i = std::min(arguments.size(), i + (has_value_behind ? 2 : 1));
    }
    const auto end = arguments.begin() + static_cast<std::ptrdiff_t>(i);
    const bool marked = end != arguments.end() && *end == "--";
    return {{arguments.begin(), end}, {end + (marked ? 1 : 0), arguments.end()}};
}

Result<ParsedCommand> parse_command(const CommandSpec& spec, std::vector<std::string> arguments) {
    ParsedCommand parsed;
    if (spec.runs_program) {
        ProgramCut cut = cut_program(spec.settings, arguments);
        arguments = std::move(cut.options);
        parsed.program = std::move(cut.program);
    }
    CLI::App app{std::string(spec.summary), "gpr " + std::string(spec.name)};
    app.set_help_flag("");
    app.add_flag("-h,--help", parsed.wants_help);
    app.allow_extras();
    std::list<FlagValue> values;
    for (const Setting& setting : spec.settings) {
        add_flag(app, values.emplace_back(FlagValue{&setting, nullptr, "", {}}));
    }
    try {
        std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
        app.parse(std::move(arguments));
    } catch (const CLI::ParseError& error) {
        return fail(fmt::format("{}; see 'gpr {} --help'", explained(error.what()), spec.name));
    }
    if (parsed.wants_help) return parsed;
    for (const FlagValue& value : values) GPR_CHECK(take_answer(value, parsed.flags));
    GPR_CHECK(take_words(spec, app.remaining(), parsed));
    return parsed;
}

bool takes_next_word(const Setting& setting) {
    return setting.kind == SettingKind::text || setting.kind == SettingKind::list;
}

std::string shown_flag(const Setting& setting) {
    const std::string name =
        (setting.letter == 0 ? "" : short_flag(setting) + ", ") + flag_name(setting);
    switch (setting.kind) {
        case SettingKind::toggle: return name;
        case SettingKind::toggle_or_text: return fmt::format("{}[={}]", name, setting.value_name);
        case SettingKind::attached_text: return fmt::format("{}={}", name, setting.value_name);
        default: return fmt::format("{} {}", name, setting.value_name);
    }
}

std::string configuration_note(const CommandSpec& spec) {
    const bool is_configurable =
        std::ranges::find(spec.settings, "config", &Setting::name) != spec.settings.end();
    if (!is_configurable) return "";
    return fmt::format(
        "Every option is also an environment variable ({}) and, but for --config, a key of\n"
        "the configuration file ('{}'). Option beats environment beats file.\n",
        environment_name(spec.settings.front().name), spec.settings.front().name);
}

std::string help_text(const CommandSpec& spec) {
    std::string text = fmt::format("usage: gpr {} {}\n\n{}\n", spec.name, spec.usage, spec.summary);
    size_t width = std::string_view("-h, --help").size();
    for (const Setting& setting : spec.settings) {
        width = std::max(width, shown_flag(setting).size());
    }
    const auto lines_of = [&](Section section) {
        std::string lines;
        for (const Setting& setting : spec.settings) {
            if (setting.section != section) continue;
            lines += fmt::format("  {:<{}}  {}\n", shown_flag(setting), width, setting.help);
        }
        return lines;
    };
    text += "\noptions:\n" + lines_of(Section::usual);
    text += fmt::format("  {:<{}}  {}\n", "-h, --help", width, "print this");
    const std::string diagnosis = lines_of(Section::diagnosis);
    if (!diagnosis.empty()) text += "\noptions for diagnosis:\n" + diagnosis;
    const std::string configuration = configuration_note(spec);
    if (!configuration.empty()) text += "\n" + configuration;
    if (!spec.notes.empty()) text += fmt::format("\n{}\n", spec.notes);
    return text;
}

}  // namespace gpr
