#include "tools/completion.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "syscall/call_choice.h"
#include "syscall/table.h"
#include "tools/command_line.h"
#include "tools/split_rules.h"

namespace gpr {
namespace {

constexpr std::array levels = {"trace", "debug", "info", "warning", "error", "off"};

const Setting* find_setting(const CommandSpec& spec, std::string_view flag) {
    const auto found = std::ranges::find_if(spec.settings, [&](const Setting& setting) {
        return flag == "--" + std::string(setting.name) ||
               (setting.letter != 0 && flag == std::string{'-', setting.letter});
    });
    return found == spec.settings.end() ? nullptr : &*found;
}

std::vector<Candidate> behind(std::string_view kind, std::vector<Candidate> names) {
    for (Candidate& each : names) each.word.insert(0, kind);
    return names;
}

std::vector<Candidate> rule_candidates(std::string_view typed, const CompletionSources& sources) {
    std::vector<Candidate> names;
    if (typed.starts_with("profile:")) return behind("profile:", sources.profiles());
    if (typed.starts_with("sock:")) {
        for (const std::string_view family : family_names()) {
            names.push_back({std::string(family), ""});
        }
        return behind("sock:", std::move(names));
    }
    if (typed.starts_with("sys:")) {
        for (const Row* row : all_rows()) {
            if (why_not_remote(*row).empty()) names.push_back({row->name, ""});
        }
        return behind("sys:", std::move(names));
    }
    for (const SplitWord& each : split_words()) {
        const char* more = each.argument.starts_with(':') ? ":" : "";
        names.push_back({fmt::format("{}{}", each.kind, more), std::string(each.about)});
    }
    return names;
}

// What this kind of value may be, as the help text calls it.
void add_values(std::string_view kind, std::string_view typed, const CompletionSources& sources,
                Completion& to) {
    const auto take = [&](std::vector<Candidate> more) {
        to.candidates.insert(to.candidates.end(), more.begin(), more.end());
    };
    if (kind.find("FILE") != std::string_view::npos || kind == "PATH") to.files = true;
    // A plain "ADDR" is one to listen on.
    if (kind != "ADDR" && kind.find("ADDR") != std::string_view::npos) take(sources.acceptors());
    if (kind.find("PID") != std::string_view::npos || kind.starts_with("SESSION")) {
        take(sources.sessions());
    }
    if (kind.starts_with("RULE")) take(rule_candidates(typed, sources));
    if (kind == "LEVEL") {
        for (const char* level : levels) take({{level, ""}});
    }
}

std::vector<Candidate> flags_of(const CommandSpec& spec) {
    std::vector<Candidate> flags;
    for (const Setting& setting : spec.settings) {
        const bool is_attached = setting.kind == SettingKind::attached_text;
        flags.push_back({fmt::format("--{}{}", setting.name, is_attached ? "=" : ""),
                         std::string(setting.help)});
    }
    flags.push_back({"--help", "print a summary"});
    return flags;
}

// What the command takes besides options, such as "[PID|ADDR]".
std::string_view usual_word(const CommandSpec& spec) {
    return spec.most_words == 0 ? "" : spec.usage.substr(spec.usage.rfind(' ') + 1);
}

Completion complete_options(const Command& command, const Words& words,
                            const CompletionSources& sources) {
    const CommandSpec& spec = command.spec();
    const std::string& typed = words.back();
    Completion completion;
    if (spec.runs_program) {
        const ProgramCut cut = cut_program(spec.settings, {words.begin() + 1, words.end()});
        if (!cut.program.empty()) {
            completion.program = words.size() - cut.program.size();
            return completion;
        }
    }
    const Setting* before =
        words.size() > 2 ? find_setting(spec, words[words.size() - 2]) : nullptr;
    if (before != nullptr && takes_next_word(*before)) {
        add_values(before->value_name, typed, sources, completion);
        return completion;
    }
    const size_t equals = typed.starts_with("--") ? typed.find('=') : std::string::npos;
    if (equals != std::string::npos) {
        const Setting* attached = find_setting(spec, typed.substr(0, equals));
        if (attached == nullptr) return completion;
        add_values(attached->value_name, typed.substr(equals + 1), sources, completion);
        completion.candidates = behind(typed.substr(0, equals + 1), completion.candidates);
    } else if (typed.starts_with("-")) {
        completion.candidates = flags_of(spec);
    } else if (command.name == "token" && words.size() == 2) {
        completion.candidates = {{"new", "make a token"}};
    } else {
        add_values(usual_word(spec), typed, sources, completion);
    }
    return completion;
}

Completion complete_command() {
    Completion completion;
    for (const Command& command : all_commands()) {
        completion.candidates.push_back({std::string(command.name), std::string(command.summary)});
    }
    return completion;
}

}  // namespace

Completion complete(const Words& words, const CompletionSources& sources) {
    Completion completion;
    if (words.empty()) return completion;
    const Command* command = words.size() > 1 ? find_command(words.front()) : nullptr;
    if (words.size() == 1) {
        completion = complete_command();
        for (const char* word : {"help", "--help", "--version"}) {
            completion.candidates.push_back({word, ""});
        }
    } else if (words.front() == "help") {
        completion = words.size() == 2 ? complete_command() : Completion();
    } else if (command != nullptr) {
        completion = complete_options(*command, words, sources);
    }
    std::erase_if(completion.candidates,
                  [&](const Candidate& each) { return !each.word.starts_with(words.back()); });
    return completion;
}

}  // namespace gpr
