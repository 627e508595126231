#include "tools/session_options.h"

#include <algorithm>
#include <cstdio>

#include "acceptor/daemon/embedded.h"
#include "base/log.h"
#include "monitor/rules/rule_use.h"
#include "tools/common_settings.h"
#include "tools/count.h"
#include "tools/device_request.h"
#include "tools/option_details.h"
#include "tools/split_rules.h"

namespace gpr {

const std::string split_rule_notes =
    "split rules (default: auto):\n"
    "  auto         a process begins here, and goes to the node as a whole once it computes or\n"
    "               opens what a profile is about, which is in force then\n"
    "  all          the whole program runs on the node\n"
    "  lib:GLOB     text of libraries whose path or name matches runs there only\n"
    "  fn:LIB!FUNCTION\n"
    "               exported functions run there only; both are globs: fn:libz.so*!deflate*\n"
    "  home:GLOB    text that matches runs here only\n"
    "  path:GLOB[=TARGET]\n"
    "               what matches of the file tree, and all below, is the acceptor's; TARGET is\n"
    "               what it shows there\n"
    "  missing:GLOB the same, of what this host does not have\n"
    "  dev:GLOB     the same, of devices: dev:/dev/kvm\n"
    "  sock:FAMILY  sockets of this family are the acceptor's: sock:inet\n"
    "  sys:NAME     this system call is made at the acceptor: sys:uname\n"
    "  profile:NAME all rules of a profile: cuda, hip, kvm, opencl, vulkan, or one of your own\n"
    "  RULE@NAME    on the acceptor called NAME; without, on the first one\n"
    "  chaos[:SEED] for diagnosis: all threads cross at random\n"
    "A GLOB of a library is for its whole path, where '*' matches slashes as well, and, if it has "
    "no\n"
    "slash, also for its file name alone: lib:libz.so*, lib:*numpy*, lib:/opt/x/*.\n"
    "\n"
    "ADDR is HOST[:PORT], [V6]:PORT, unix:/path, a name from the configuration, or 'local' for an\n"
    "acceptor inside this command.\n"
    "Lists in the environment are separated by commas.\n";

namespace {

Failure no_acceptor() {
    return fail(
        "no acceptor is named; add '--acceptor HOST:PORT', set GPR_ACCEPTOR or 'acceptor' in the"
        " configuration, or try '--acceptor local'");
}

Result<> check_credentials(const ExecOptions& options) {
    for (const AcceptorAddress& acceptor : options.acceptors) {
        if (!acceptor.is_local() && options.token_file.empty()) {
            return fail(fmt::format(
                "acceptor {} wants a token and none is named; run 'gpr token new' there, copy it"
                " here, and add '--token-file FILE'",
                acceptor.address));
        }
    }
    return {};
}

// A second acceptor that no rule names would be useless, and its loss would end the program.
Result<> check_nodes(const ExecOptions& options) {
    for (const AcceptorAddress& acceptor : options.acceptors) {
        const bool is_used =
            std::any_of(options.rules.begin(), options.rules.end(), [&](const SplitRule& rule) {
                return rule.node == acceptor.name || rule.kind == SplitKind::chaos;
            });
        if (is_used || options.acceptors.size() == 1) continue;
        return fail(
            fmt::format("no split rule is for acceptor '{}'; add one, as in "
                        "--split 'lib:libx*@{}', or leave the acceptor out",
                        acceptor.name, acceptor.name));
    }
    return {};
}

StatsOptions stats_options(const Settings& settings) {
    const std::string stats = settings.text("stats");
    if (stats.empty() || is_false(stats)) return {};
    return {true, is_true(stats) ? "" : stats};
}

}  // namespace

std::vector<Setting> session_settings() {
    return {
        with_details(acceptor_setting, details::acceptor),
        with_details(split_setting, details::split),
        with_details(device_setting, details::device),
        with_details(device_count_setting, details::device_count),
        with_details(token_file_setting, details::token_file),
        with_details(
            {"stats", SettingKind::toggle_or_text, "FILE",
             "say at the end what crossed, in words; with FILE as JSON ('-': to stdout)", true},
            details::stats),
        with_details({"mask-cpu", SettingKind::toggle, "",
                      "hide CPU features that the acceptor lacks from PROGRAM's C library"},
                     details::mask_cpu),
        plain_setting,
        config_setting,
        with_details(metrics_setting, details::metrics),
        log_setting,
        with_details(log_level_setting, details::log_level),
        for_diagnosis(
            with_details({"record", SettingKind::attached_text, "FILE",
                          "record which node asked for which page, and what was decided", true},
                         details::record)),
        for_diagnosis(
            with_details({"no-gravity", SettingKind::toggle, "",
                          "let threads in code that is on every node stay where they are"},
                         details::no_gravity)),
        for_diagnosis({"go-after", SettingKind::text, "MS",
                       "under 'auto', a process goes so many milliseconds after it began, whatever "
                       "it does"}),
        for_diagnosis({"return-after", SettingKind::text, "MS",
                       "under 'auto', a process comes home so many milliseconds after it went, "
                       "whatever it does"}),
        for_diagnosis(
            with_details({"no-bpf", SettingKind::toggle, "",
                          "use no BPF on any node; BPF costs everybody's system calls 60 ns"},
                         details::no_bpf)),
    };
}

Result<ExecOptions> session_options(const CommandSpec& spec, const ParsedCommand& parsed,
                                    const Environment& environment) {
    GPR_TRY(const GatheredSettings gathered, gather_settings(spec, parsed.flags, environment));
    const Settings& settings = gathered.settings;
    ExecOptions options;
    options.config_file = gathered.config_file;
    options.plain_allowed = settings.toggle("plain");
    options.token_file = settings.text("token-file");
    options.log = {settings.text("log"), settings.text("log-level", options.log.level),
                   settings.has("log-level")};
    options.stats = stats_options(settings);
    options.metrics = settings.text("metrics");
    options.record_file = settings.text("record");
    options.bpf = !settings.toggle("no-bpf");
    options.gravity = !settings.toggle("no-gravity");
    options.mask_cpu = settings.toggle("mask-cpu");
    if (settings.has("go-after")) {
        GPR_TRY(options.goes_after_ms, parse_count(settings.text("go-after"), "go-after"));
    }
    if (settings.has("return-after")) {
        GPR_TRY(options.returns_after_ms,
                parse_count(settings.text("return-after"), "return-after"));
    }
    if (!is_log_level(options.log.level)) {
        return fail(
            fmt::format("no log level is called '{}'; there are trace, debug, info, warning,"
                        " error and off",
                        options.log.level));
    }
    GPR_TRY(options.acceptors, parse_acceptors(acceptors_of(gathered), options.plain_allowed));
    if (options.acceptors.empty()) return no_acceptor();
    GPR_TRY(options.rules, parse_split_rules(settings.list("split"), options.acceptors,
                                             Profiles(profile_folders(environment))));
    GPR_CHECK(request_devices(settings, environment, options));
    GPR_CHECK(check_nodes(options));
    GPR_CHECK(check_credentials(options));
    return options;
}

// Needed to repeat a failure of this run.
void announce_seed(const ExecOptions& options) {
    for (const SplitRule& rule : options.rules) {
        const bool chosen = !rule.pattern.empty();
        if (rule.kind != SplitKind::chaos || chosen) continue;
        fmt::print(stderr, "gpr: '--split chaos:{}' repeats this run\n", rule.seed);
    }
}

// The first lines of --log-level info; the monitor writes the rest.
void tell_of_session(const ExecOptions& options, const std::string& what) {
    if (!options.log.file.empty() || !options.log.on_stderr) return;
    if (const auto logging = start_logging("", options.log.level); !logging) return;
    spdlog::info("gpr {}, configuration: {}", GPR_VERSION,
                 options.config_file.empty() ? "none" : options.config_file);
    std::vector<std::string> rules;
    for (const SplitRule& rule : options.rules) {
        if (!rule.standby) rules.push_back(rule_text(rule));
    }
    spdlog::info("split rules: {}", fmt::join(rules, ", "));
    spdlog::info("{}", what);
}

// It shares our kernel, so its kernel features need not be asked for.
Result<LocalAcceptor> start_local_acceptor(const LogOptions& log) {
    const EmbeddedAcceptorOptions options{log.file, log.level, {}};
    GPR_TRY(EmbeddedAcceptor acceptor, start_embedded_acceptor(options));
    return LocalAcceptor{std::move(acceptor.connection), std::move(acceptor.token)};
}

}  // namespace gpr
