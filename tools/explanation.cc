#include "tools/explanation.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/fd.h"
#include "monitor/rules/function_symbols.h"
#include "monitor/rules/path_rules.h"
#include "monitor/rules/rule_use.h"
#include "monitor/rules/split_policy.h"
#include "tools/table.h"

namespace gpr {
namespace {

constexpr std::string_view nothing_known = "nothing that is known before it runs";
constexpr size_t most_shown = 3;

std::string reason(const SplitRule& rule) {
    return rule.profile.empty() ? rule_text(rule)
                                : fmt::format("{} (profile {})", rule_text(rule), rule.profile);
}

// "a, b, c and 9 more".
std::string shortened(const std::vector<std::string>& words) {
    if (words.empty()) return std::string(nothing_known);
    const size_t shown = std::min(words.size(), most_shown);
    std::string text = fmt::format("{}", fmt::join(words.begin(), words.begin() + shown, ", "));
    if (words.size() > shown) text += fmt::format(" and {} more", words.size() - shown);
    return text;
}

class Explainer {
public:
    Explainer(const std::vector<SplitRule>& rules, const ProgramChain& program)
        : rules_(rules),
          policy_(rules),
          paths_(path_rules_of(rules), read_root_links()),
          program_(program) {
        for (const SplitRule& rule : rules_) {
            result_.rules.push_back({rule_text(rule), rule.profile, rule.node, rule.standby, {}});
        }
        for (size_t i = 0; i < rules_.size(); i++) {
            if (is_about_files(rules_[i].kind)) about_files_.push_back(i);
        }
        result_.scripts = program.scripts;
        result_.program = program.path;
    }

    Explanation explain(const std::vector<std::string>& arguments, const LinkerSettings& linker) {
        add_code(program_.path, {});
        for (const Library& library : libraries_of(program_.path, program_.elf, paths_, linker)) {
            add_library(library);
        }
        for (const std::string& argument : arguments) add_argument(argument);
        for (const size_t i : about_files_) {
            // A `missing` rule does not concern files that exist here.
            if (rules_[i].kind == SplitKind::missing) continue;
            for (std::string& path : files_matching(rules_[i].pattern)) matched(i, std::move(path));
        }
        for (size_t i = 0; i < rules_.size(); i++) add_calls(i);
        return std::move(result_);
    }

private:
    ExplainedFile& add_code(const std::string& path, const std::string& needed_by) {
        ExplainedFile file{path, "either", "no rule names it", needed_by, "", {}};
        const SplitRule* rule = policy_.rule_for(path);
        if (policy_.chaos_seed() != 0) {
            file.where = "both";
            file.why = reason(rule_of(SplitKind::chaos));
            matched(rule_of(SplitKind::chaos), path);
        } else if (policy_.mixed() && rule) {
            file.where = rule->kind == SplitKind::home ? "home" : "acceptor";
            file.why = reason(*rule);
            matched(*rule, path);
        } else if (policy_.begins_remotely()) {
            file.where = "acceptor";
            file.why = reason(rule_of(SplitKind::all));
            matched(rule_of(SplitKind::all), path);
            if (rule) matched(*rule, path);
        } else if (policy_.has_functions() && path == program_.path) {
            file.where = "home";
            file.why = "it is the program itself, whose functions return to it";
        }
        add_functions(file);
        return result_.code.emplace_back(std::move(file));
    }

    void add_functions(ExplainedFile& file) {
        const bool whole = file.where == "acceptor";
        std::set<std::string> names;
        for (const SplitRule& rule : policy_.function_rules(file.path)) {
            if (whole) matched(rule, file.path);
            const Fd fd(open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
            if (file.where != "either" || !fd) continue;
            const std::string library = std::filesystem::path(file.path).filename().string();
            const auto found = find_functions(fd.get(), library, {rule});
            if (!found || !found->functions) continue;
            for (const ChosenFunction& function : found->functions->list) {
                matched(rule, fmt::format("{}!{}", library, function.name));
                names.insert(function.name);
            }
        }
        file.functions.assign(names.begin(), names.end());
        if (!names.empty()) {
            file.why = fmt::format("but at the acceptor: {}", shortened(file.functions));
        }
    }

    void add_library(const Library& library) {
        if (library.place == Library::Place::nowhere) {
            result_.missing.push_back(library.name);
            result_.code.push_back(
                {library.name, "nowhere", "not found", library.needed_by, "", {}});
            return;
        }
        ExplainedFile& file = add_code(library.path, library.needed_by);
        if (library.place == Library::Place::here) return;
        const size_t rule = about_files_[library.path_rule];
        file.file_why = reason(rules_[rule]);
        matched(rule, library.path);
    }

    // What can be said about calls before they are made.
    void add_calls(size_t rule) {
        if (rules_[rule].kind == SplitKind::sock) {
            matched(rule, fmt::format("all sockets of family {}", rules_[rule].pattern));
        } else if (rules_[rule].kind == SplitKind::sys) {
            matched(rule, fmt::format("each call of {}", rules_[rule].pattern));
        }
    }

    // Also for a path after an equals sign, as in --device=/dev/kvm.
    void add_argument(const std::string& argument) {
        const size_t equals = argument.find("=/");
        const std::string path =
            equals == std::string::npos ? argument : argument.substr(equals + 1);
        const PathVerdict verdict = paths_.owner_of(path);
        if (verdict.owner == PathOwner::home) return;
        const bool is_here = !files_matching(path).empty();
        if (verdict.owner == PathOwner::whoever && is_here) return;
        const size_t rule = about_files_[verdict.rule];
        result_.arguments.push_back({path, "acceptor", reason(rules_[rule]), "", "", {}});
        matched(rule, path);
    }

    [[nodiscard]] const SplitRule& rule_of(SplitKind kind) const {
        return *std::find_if(rules_.begin(), rules_.end(),
                             [&](const SplitRule& rule) { return rule.kind == kind; });
    }

    void matched(const SplitRule& rule, const std::string& what) {
        const auto place = std::find(rules_.begin(), rules_.end(), rule);
        matched(static_cast<size_t>(place - rules_.begin()), what);
    }

    void matched(size_t rule, std::string what) {
        std::vector<std::string>& matches = result_.rules[rule].matches;
        const bool known = std::find(matches.begin(), matches.end(), what) != matches.end();
        if (!known) matches.push_back(std::move(what));
    }

    const std::vector<SplitRule>& rules_;
    SplitPolicy policy_;
    PathRules paths_;
    const ProgramChain& program_;
    // Indices into rules_, in the order in which PathRules counts.
    std::vector<size_t> about_files_;
    Explanation result_;
};

nlohmann::json as_json(const ExplainedFile& file) {
    nlohmann::json out{{"path", file.path}, {"where", file.where}, {"why", file.why}};
    if (!file.needed_by.empty()) out["needed_by"] = file.needed_by;
    if (!file.file_why.empty()) out["file_from"] = file.file_why;
    if (!file.functions.empty()) out["functions"] = file.functions;
    return out;
}

nlohmann::json as_json(const std::vector<ExplainedFile>& files) {
    nlohmann::json out = nlohmann::json::array();
    for (const ExplainedFile& file : files) out.push_back(as_json(file));
    return out;
}

}  // namespace

std::string Explanation::table() const {
    std::string text;
    for (const std::string& script : scripts) {
        text += fmt::format("{} is a script; what runs is its interpreter\n", script);
    }
    text += fmt::format("program {}\n\n", program);
    std::vector<std::vector<std::string>> rows{{"CODE", "RUNS", "WHY"}};
    for (const ExplainedFile& file : code) {
        const std::string from =
            file.file_why.empty() ? "" : fmt::format("; the acceptor's file: {}", file.file_why);
        rows.push_back({file.path, file.where, file.why + from});
    }
    text += format_table(rows);
    if (!arguments.empty()) {
        rows = {{"ARGUMENT", "IS", "WHY"}};
        for (const ExplainedFile& file : arguments) {
            rows.push_back({file.path, "the acceptor's", file.why});
        }
        text += '\n' + format_table(rows);
    }
    rows = {{"RULE", "MATCHES"}};
    std::vector<std::string> standby;
    for (const ExplainedRule& rule : rules) {
        if (rule.standby && (standby.empty() || standby.back() != rule.profile)) {
            standby.push_back(rule.profile);
        }
        if (rule.standby && rule.matches.empty()) continue;
        const std::string from = rule.profile.empty() ? "" : fmt::format(" ({})", rule.profile);
        rows.push_back({rule.rule + from, shortened(rule.matches)});
    }
    text += '\n' + format_table(rows);
    if (!standby.empty()) {
        text += fmt::format(
            "\nstanding by, where the acceptor has something for them: {}. The first one whose "
            "files the\nprogram opens is in force from then on.\n",
            fmt::join(standby, ", "));
    }
    return text +
           "\nacceptor, home: runs there only; either: where its caller is. Libraries that are "
           "loaded by\ndlopen and files that are opened are known only when it runs.\n";
}

std::string Explanation::json() const {
    nlohmann::json out{{"program", program},    {"scripts", scripts},
                       {"code", as_json(code)}, {"arguments", as_json(arguments)},
                       {"missing", missing},    {"rules", nlohmann::json::array()}};
    for (const ExplainedRule& rule : rules) {
        nlohmann::json entry{{"rule", rule.rule}, {"matches", rule.matches}};
        if (!rule.profile.empty()) entry["profile"] = rule.profile;
        if (!rule.node.empty()) entry["acceptor"] = rule.node;
        if (rule.standby) entry["standby"] = true;
        out["rules"].push_back(std::move(entry));
    }
    return out.dump(2) + "\n";
}

Explanation explain(const std::vector<SplitRule>& rules, const ProgramChain& program,
                    const std::vector<std::string>& arguments, const LinkerSettings& linker) {
    return Explainer(rules, program).explain(arguments, linker);
}

}  // namespace gpr
