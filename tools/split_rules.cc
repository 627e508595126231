#include "tools/split_rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <limits>
#include <random>

#include "base/suggest.h"
#include "mm/page_protocol.h"
#include "syscall/call_choice.h"
#include "transport/endpoint.h"

namespace gpr {
namespace {

constexpr std::array words = {
    SplitWord{"auto", "", "a process goes once it computes or uses a device"},
    SplitWord{"all", "", "the whole program runs there"},
    SplitWord{"lib", ":GLOB", "libraries run there only"},
    SplitWord{"fn", ":LIB!FUNCTION", "exported functions run there only"},
    SplitWord{"home", ":GLOB", "text runs here only"},
    SplitWord{"path", ":GLOB[=TARGET]", "of the file tree"},
    SplitWord{"missing", ":GLOB", "of the file tree, what this host lacks"},
    SplitWord{"dev", ":GLOB", "devices"},
    SplitWord{"sock", ":FAMILY", "sockets of a family"},
    SplitWord{"sys", ":NAME", "a system call"},
    SplitWord{"profile", ":NAME", "all rules of a profile"},
    SplitWord{"chaos", "[:SEED]", "for diagnosis: threads cross at random"},
};
constexpr std::string_view profile_kind = "profile:";

bool is_name_char(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

bool is_name(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), is_name_char);
}

bool is_called(const std::vector<AcceptorAddress>& acceptors, std::string_view name) {
    return std::any_of(acceptors.begin(), acceptors.end(),
                       [&](const AcceptorAddress& a) { return a.name == name; });
}

// Names that users gave; an acceptor without one is called by its number.
std::vector<std::string_view> given_names(const std::vector<AcceptorAddress>& acceptors) {
    std::vector<std::string_view> names;
    for (size_t i = 0; i < acceptors.size(); ++i) {
        if (acceptors[i].name != std::to_string(i + 1)) names.push_back(acceptors[i].name);
    }
    return names;
}

Failure nobody_called(std::string_view text, std::string_view node,
                      const std::vector<AcceptorAddress>& acceptors) {
    const std::vector<std::string_view> names = given_names(acceptors);
    const std::string nearest = nearest_word(node, names);
    const std::string advice = !nearest.empty() ? fmt::format("did you mean '{}'?", nearest)
                               : names.empty()
                                   ? fmt::format("give it the name with '--acceptor {}=ADDR'", node)
                                   : fmt::format("there are {}", fmt::join(names, ", "));
    return fail(fmt::format("split rule '{}': no acceptor is called '{}'; {}", text, node, advice));
}

Result<AcceptorAddress> parse_acceptor(const std::string& text, size_t node, bool plain_allowed) {
    AcceptorAddress acceptor{std::to_string(node), text};
    const size_t equals = text.find('=');
    if (equals != std::string::npos && is_name(std::string_view(text).substr(0, equals))) {
        acceptor = {text.substr(0, equals), text.substr(equals + 1)};
    }
    if (!acceptor.is_local()) GPR_CHECK(parse_endpoint(acceptor.address, plain_allowed));
    return acceptor;
}

// The end of the set of a glob that begins at `open`; npos: it has no end.
size_t end_of_set(std::string_view text, size_t open) {
    size_t first = open + 1;  // a ']' there is one of its members
    if (first < text.size() && (text[first] == '!' || text[first] == '^')) ++first;
    return text.find(']', first + 1);
}

// fnmatch takes an invalid pattern literally, so a mistake would go unnoticed.
bool is_glob(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\') {
            if (++i == text.size()) return false;
        } else if (text[i] == '[') {
            i = end_of_set(text, i);
            if (i == std::string_view::npos) return false;
        }
    }
    return true;
}

struct RuleText {
    std::string_view rule;
    std::string_view node;
};

Result<RuleText> cut_node(std::string_view text, const std::vector<AcceptorAddress>& acceptors) {
    const size_t at = text.rfind('@');
    if (at == std::string_view::npos) return RuleText{text, {}};
    const std::string_view node = text.substr(at + 1);
    if (is_called(acceptors, node)) return RuleText{text.substr(0, at), node};
    // Library names may hold an '@' (libfoo@1.so); a word that could be a name is taken as one.
    if (!is_name(node) || node.find(".so") != std::string_view::npos) return RuleText{text, {}};
    return nobody_called(text, node, acceptors);
}

Failure bad_kind(std::string_view text) {
    std::vector<std::string_view> kinds;
    std::vector<std::string> known;
    for (const SplitWord& each : words) {
        kinds.push_back(each.kind);
        known.push_back(fmt::format("{}{}", each.kind, each.argument));
    }
    const std::string_view typed = text.substr(0, text.find(':'));
    const std::string nearest = nearest_word(typed, kinds);
    if (!nearest.empty() && nearest != typed && text.find(':') != std::string_view::npos) {
        return fail(fmt::format("split rule '{}' is not understood; did you mean '{}{}'?", text,
                                nearest, text.substr(typed.size())));
    }
    return fail(fmt::format("split rule '{}' is not understood; use {} or {}, then @NODE if needed",
                            text, fmt::join(known.begin(), known.end() - 1, ", "), known.back()));
}

Result<SplitRule> parse_path(std::string_view text, std::string_view kind, std::string pattern,
                             const std::string& node) {
    SplitRule rule{kind == "dev"       ? SplitKind::dev
                   : kind == "missing" ? SplitKind::missing
                                       : SplitKind::path,
                   std::move(pattern), node};
    const size_t equals = rule.pattern.find('=');
    if (rule.kind == SplitKind::path && equals != std::string::npos) {
        rule.target = rule.pattern.substr(equals + 1);
        rule.pattern.resize(equals);
        if (!rule.target.starts_with('/')) {
            return fail(
                fmt::format("split rule '{}': '{}' is not an absolute path", text, rule.target));
        }
        if (rule.pattern.find_first_of("*?[") != std::string::npos) {
            return fail(fmt::format(
                "split rule '{}': what is shown elsewhere needs one place, without wildcards",
                text));
        }
    }
    if (!rule.pattern.starts_with('/')) {
        return fail(
            fmt::format("split rule '{}': '{}' is not an absolute path", text, rule.pattern));
    }
    if (rule.kind == SplitKind::dev && !rule.pattern.starts_with("/dev/")) {
        return fail(fmt::format("split rule '{}': devices are below /dev; use path:{}", text,
                                rule.pattern));
    }
    while (rule.pattern.size() > 1 && rule.pattern.back() == '/') rule.pattern.pop_back();
    if (std::filesystem::path(rule.pattern).lexically_normal() == "/") {
        return fail(
            fmt::format("split rule '{}' is for the whole file tree, with /proc, /dev and "
                        "the program itself; name the folders in it, such as {}:/opt/x",
                        text, kind));
    }
    return rule;
}

// The glob for a library ends at the first '!' that is not part of a set: [!a].
Result<SplitRule> parse_function(std::string_view text, const std::string& pattern,
                                 const std::string& node) {
    size_t mark = 0;
    while (mark < pattern.size() && pattern[mark] != '!') {
        const size_t close = pattern[mark] == '[' ? end_of_set(pattern, mark) : std::string::npos;
        if (close != std::string::npos) mark = close;
        mark += pattern[mark] == '\\' ? 2 : 1;
    }
    if (mark == 0 || mark + 1 >= pattern.size()) {
        return fail(fmt::format(
            "split rule '{}' needs a library and a function, as in fn:libz.so*!deflate", text));
    }
    SplitRule rule{SplitKind::fn, pattern.substr(0, mark), node};
    rule.symbols = pattern.substr(mark + 1);
    for (const std::string& glob : {rule.pattern, rule.symbols}) {
        if (is_glob(glob)) continue;
        return fail(
            fmt::format("split rule '{}': '{}' is not a glob: a '[' or '\\' is open", text, glob));
    }
    if (rule.symbols.find('/') != std::string::npos) {
        return fail(fmt::format("split rule '{}': no function is called '{}'", text, rule.symbols));
    }
    return rule;
}

Result<SplitRule> parse_chaos(std::string_view text, const std::string& seed,
                              const std::string& node) {
    SplitRule rule{SplitKind::chaos, seed, node};
    const char* end = seed.data() + seed.size();
    const auto [stopped_at, problem] = std::from_chars(seed.data(), end, rule.seed);
    if (problem != std::errc{} || stopped_at != end || rule.seed == 0) {
        return fail(fmt::format("split rule '{}': a seed is a number from 1 to {}", text,
                                std::numeric_limits<uint64_t>::max()));
    }
    return rule;
}

// The address family that is probably meant by a word that names none: AF_INET, ipv4, tcp.
std::string meant_family(std::string name) {
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (name.starts_with("af_") || name.starts_with("pf_")) name.erase(0, 3);
    if (name == "ipv4" || name == "ip" || name == "tcp" || name == "udp") name = "inet";
    if (name == "ipv6") name = "inet6";
    const auto family = family_called(name);
    return family ? name_of_family(*family) : nearest_word(name, family_names());
}

Result<SplitRule> parse_sockets(std::string_view text, const std::string& name,
                                const std::string& node) {
    const auto family = family_called(name);
    if (!family) {
        const std::string nearest = meant_family(name);
        return fail(fmt::format(
            "split rule '{}': no family of sockets is called '{}'; {}", text, name,
            nearest.empty() ? "socket(2) lists them, such as inet, inet6, unix and netlink"
                            : fmt::format("did you mean '{}'?", nearest)));
    }
    return SplitRule{SplitKind::sock, name_of_family(*family), node};
}

Result<SplitRule> parse_call(std::string_view text, const std::string& name,
                             const std::string& node) {
    const Row* row = find_row(std::string_view(name));
    if (row == nullptr) {
        std::vector<std::string_view> known;
        for (const Row* each : all_rows()) known.emplace_back(each->name);
        const std::string nearest = nearest_word(name, known);
        return fail(fmt::format("split rule '{}': no system call is called '{}'; {}", text, name,
                                nearest.empty() ? "'gpr syscalls' lists them"
                                                : fmt::format("did you mean '{}'?", nearest)));
    }
    const std::string why_not = why_not_remote(*row);
    if (!why_not.empty()) {
        return fail(fmt::format("split rule '{}': {} cannot be given to the acceptor: {}", text,
                                name, why_not));
    }
    return SplitRule{SplitKind::sys, name, node};
}

uint64_t draw_seed() {
    std::random_device source;
    return source() | 1;
}

// Reads rules, and puts the rules of profiles in place of the profiles' names.
class RuleReader {
public:
    RuleReader(const std::vector<AcceptorAddress>& acceptors, const Profiles& profiles)
        : acceptors_(acceptors), profiles_(profiles) {}

    Result<> read(std::string_view text) {
        if (text.starts_with(profile_kind)) return read_profile(text);
        GPR_TRY(const RuleText cut, cut_node(text, acceptors_));
        if (cut.rule == "auto") return read_auto(text);
        GPR_TRY(SplitRule rule, parse_split_rule(text, acceptors_));
        if (!open_.empty()) rule.profile = open_.front();
        rules.push_back(std::move(rule));
        return {};
    }

    std::vector<SplitRule> rules;

private:
    // The whole program, and any profile once the program uses one of its files.
    Result<> read_auto(std::string_view text) {
        if (!open_.empty()) return fail(fmt::format("split rule '{}' is for no profile", text));
        const std::string node(text.substr(std::string_view("auto").size()));  // with its @
        GPR_CHECK(read("all" + node));
        rules.back().rests = true;
        const size_t first = rules.size();
        for (const std::string& name : profiles_.names()) {
            GPR_CHECK(read_profile(std::string(profile_kind) + name + node));
        }
        const auto is_of_other = [](const SplitRule& rule) { return !is_about_files(rule.kind); };
        // Rules about code would come too late for code that already runs, and calls happen all the
        // time.
        rules.erase(
            std::remove_if(rules.begin() + static_cast<ptrdiff_t>(first), rules.end(), is_of_other),
            rules.end());
        for (size_t i = first; i < rules.size(); ++i) rules[i].standby = true;
        return {};
    }

    Result<> read_profile(std::string_view text) {
        GPR_TRY(const RuleText cut, cut_node(text, acceptors_));
        const std::string name(cut.rule.substr(profile_kind.size()));
        auto profile = profiles_.find(name);
        if (!profile) {
            return fail(fmt::format("split rule '{}': {}", text, profile.error().message()));
        }
        if (std::find(open_.begin(), open_.end(), name) != open_.end()) {
            return fail(fmt::format("split rule '{}': profile '{}' is part of itself", text, name));
        }
        open_.push_back(name);
        const size_t first = rules.size();
        for (const std::string& rule : profile->rules) {
            if (auto done = read(rule); !done) {
                return fail(fmt::format("profile '{}' ({}): {}", name, profile->source,
                                        done.error().message()));
            }
        }
        open_.pop_back();
        for (size_t i = first; i < rules.size() && !cut.node.empty(); ++i) {
            if (rules[i].kind != SplitKind::home) rules[i].node = cut.node;
        }
        return {};
    }

    const std::vector<AcceptorAddress>& acceptors_;
    const Profiles& profiles_;
    std::vector<std::string> open_;  // profiles that are being read, the outermost first
};

}  // namespace

std::span<const SplitWord> split_words() { return words; }

Result<std::vector<AcceptorAddress>> parse_acceptors(const std::vector<std::string>& texts,
                                                     bool plain_allowed) {
    std::vector<AcceptorAddress> acceptors;
    constexpr size_t most_acceptors = max_nodes - 1;
    if (texts.size() > most_acceptors) {
        return fail(fmt::format("{} acceptors are named; a session has at most {}, leave some out",
                                texts.size(), most_acceptors));
    }
    for (const std::string& text : texts) {
        GPR_TRY(AcceptorAddress acceptor,
                parse_acceptor(text, acceptors.size() + 1, plain_allowed));
        if (is_called(acceptors, acceptor.name)) {
            return fail(
                fmt::format("two acceptors are called '{}'; give one another name", acceptor.name));
        }
        acceptors.push_back(std::move(acceptor));
    }
    return acceptors;
}

Result<SplitRule> parse_split_rule(std::string_view text,
                                   const std::vector<AcceptorAddress>& acceptors) {
    GPR_TRY(const RuleText cut, cut_node(text, acceptors));
    const auto [rule, node] = cut;
    const size_t colon = rule.find(':');
    const std::string_view kind = rule.substr(0, colon);
    const std::string pattern(colon == std::string_view::npos ? "" : rule.substr(colon + 1));
    const std::string runs_on(!node.empty() || acceptors.empty() ? node : acceptors.front().name);

    if (rule == "all") return SplitRule{SplitKind::all, "", runs_on};
    if (rule == "chaos") return SplitRule{SplitKind::chaos, "", runs_on, draw_seed()};
    if (kind == "chaos") return parse_chaos(text, pattern, runs_on);
    const bool about_files = kind == "path" || kind == "missing" || kind == "dev";
    const bool about_calls = kind == "sock" || kind == "sys";
    const bool has_pattern =
        kind == "lib" || kind == "fn" || kind == "home" || about_files || about_calls;
    if (!has_pattern || colon == std::string_view::npos) return bad_kind(text);
    if (kind == "fn") return parse_function(text, pattern, runs_on);
    if (kind == "sock") return parse_sockets(text, pattern, runs_on);
    if (kind == "sys") return parse_call(text, pattern, runs_on);
    if (pattern.empty()) {
        return fail(fmt::format("split rule '{}' needs a pattern, as in {}:{}", text, kind,
                                about_files ? "/opt/x" : "libcrypto*"));
    }
    if (!is_glob(pattern)) {
        return fail(fmt::format("split rule '{}': '{}' is not a glob: a '[' or '\\' is open", text,
                                pattern));
    }
    if (about_files) return parse_path(text, kind, pattern, runs_on);
    if (kind == "lib") return SplitRule{SplitKind::lib, pattern, runs_on};
    if (!node.empty()) {
        return fail(
            fmt::format("split rule '{}': home is the initiator; leave out '@{}'", text, node));
    }
    return SplitRule{SplitKind::home, pattern, ""};
}

Result<std::vector<SplitRule>> parse_split_rules(const std::vector<std::string>& texts,
                                                 const std::vector<AcceptorAddress>& acceptors,
                                                 const Profiles& profiles) {
    RuleReader reader(acceptors, profiles);
    for (const std::string& text : texts) GPR_CHECK(reader.read(text));
    if (texts.empty()) GPR_CHECK(reader.read("auto"));
    std::vector<SplitRule>& rules = reader.rules;
    const auto about_code = std::count_if(
        rules.begin(), rules.end(), [](const SplitRule& rule) { return is_about_code(rule.kind); });
    for (const SplitRule& rule : rules) {
        if (rule.kind == SplitKind::chaos && about_code > 1) {
            return fail("split rule 'chaos' is for the whole program; leave out the other rules");
        }
    }
    if (about_code == 0) rules.push_back({SplitKind::all, "", acceptors.front().name});
    for (SplitRule& rule : rules) {
        const auto at = std::find_if(
            acceptors.begin(), acceptors.end(),
            [&](const AcceptorAddress& acceptor) { return acceptor.name == rule.node; });
        rule.node_id = at == acceptors.end() ? 0 : static_cast<uint8_t>(at - acceptors.begin() + 1);
    }
    return std::move(rules);
}

}  // namespace gpr
