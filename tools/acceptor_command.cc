#include "tools/acceptor_command.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "acceptor/daemon/daemon.h"
#include "acceptor/worker/run_worker.h"
#include "acceptor/worker/session_tally.h"
#include "base/log.h"
#include "monitor/node/host_match.h"
#include "monitor/node/process_names.h"
#include "tools/commands.h"
#include "tools/common_settings.h"
#include "tools/count.h"
#include "tools/duration.h"
#include "tools/option_details.h"
#include "transport/endpoint.h"

namespace gpr {
namespace {

constexpr std::string_view acceptor_notes =
    "ADDR is HOST[:PORT], [V6]:PORT, tcp://HOST:PORT (with --plain) or unix:/path. Nothing "
    "listens\n"
    "without a token: make one with 'gpr token new --file FILE'. Ends on SIGTERM or SIGINT; "
    "running\n"
    "sessions end with it, or leave it: --drain.";

constexpr std::string_view pretended_vdso = "vdso";
constexpr std::string_view pretended_delegation = "delegation";
constexpr std::string_view pretended_lookups = "lookups";
constexpr std::string_view pretended_breaks = "breaks";

bool is_ours(std::string_view name) {
    return name == pretended_vdso || name == pretended_delegation || name == pretended_lookups ||
           name == pretended_breaks;
}

constexpr std::chrono::seconds longest_drain{std::chrono::hours(24)};

namespace fs = std::filesystem;

Result<SessionLimits> session_limits(const Settings& settings) {
    SessionLimits limits;
    const auto read = [&](const char* name, auto parse, auto& limit) -> Result<> {
        if (!settings.has(name) || settings.text(name) == "none") return {};
        GPR_TRY(limit, parse(settings.text(name), name));
        return {};
    };
    GPR_CHECK(read("session-memory", parse_size, limits.memory_bytes));
    GPR_CHECK(read("session-cpus", parse_thousandths, limits.milli_cpus));
    GPR_CHECK(read("session-pids", parse_count, limits.tasks));
    GPR_CHECK(read("session-device-memory", parse_size, limits.device_memory_bytes));
    return limits;
}

Result<> take_cache(const Settings& settings, AcceptorOptions& options) {
    if (settings.has("cache-size")) {
        GPR_TRY(options.cache_bytes, parse_size(settings.text("cache-size"), "cache-size"));
    }
    if (!settings.has("cache")) return {};
    const std::string folder = settings.text("cache");
    options.cache_wanted = folder != "none";
    options.cache_folder = options.cache_wanted ? folder : "";
    if (options.cache_wanted && !folder.starts_with('/')) {
        return fail(fmt::format("--cache wants an absolute path or 'none', not '{}'", folder));
    }
    return {};
}

}  // namespace

const CommandSpec& acceptor_spec() {
    static const CommandSpec spec{
        "acceptor",
        "--listen ADDR --token-file FILE [OPTION]...",
        "Offer this host to initiators: each session gets a process of its own, empty and boxed.",
        {
            {"listen", SettingKind::list, "ADDR", "where initiators connect; may be repeated"},
            token_file_setting,
            with_details({"export", SettingKind::list, "PATH",
                          "let sessions see PATH (a glob) too; may be repeated"},
                         details::exported),
            with_details({"allow-network", SettingKind::toggle, "",
                          "let sessions make sockets, by split rules sock:FAMILY, each in a "
                          "network of its own"},
                         details::allow_network),
            with_details(
                {"allow-host-network", SettingKind::toggle, "",
                 "the same, in this host's own network: its loopback services are reached, too"},
                details::allow_host_network),
            with_details({"allow-raw-network", SettingKind::toggle, "",
                          "the same, also raw, packet and XDP sockets: as root with CAP_NET_RAW"},
                         details::allow_raw_network),
            with_details({"session-ports", SettingKind::text, "FIRST-LAST",
                          "ports of this host by which networks of their own are reached, shared "
                          "out to them"},
                         details::session_ports),
            with_details({"max-sessions", SettingKind::text, "N",
                          "refuse more than N sessions at once (64)"},
                         details::max_sessions),
            with_details(
                {"session-memory", SettingKind::text, "SIZE",
                 "memory of each session, such as 8G (three quarters of this host's); or none"},
                details::session_memory),
            {"session-cpus", SettingKind::text, "N", "processors of each session, such as 1.5"},
            with_details({"session-pids", SettingKind::text, "N",
                          "processes and threads of each session (16384); or none"},
                         details::session_pids),
            {"session-device-memory", SettingKind::text, "SIZE",
             "memory of each device that a session may use"},
            with_details(
                {"uid-range", SettingKind::text, "FIRST-LAST",
                 "users of this host that are nobody: each session runs as one; none: as root"},
                details::uid_range),
            with_details({"cache", SettingKind::text, "DIR",
                          "keep contents of programs and libraries there for later sessions "
                          "(/var/cache/gpr); or none"},
                         details::cache),
            {"cache-size", SettingKind::text, "SIZE", "the most that is kept there (8G)"},
            with_details({"drain", SettingKind::text, "DURATION",
                          "when it is to end, let programs go on at their initiators, within this "
                          "time, such as 30s"},
                         details::drain),
            with_details(metrics_setting, details::acceptor_metrics),
            log_setting,
            log_level_setting,
            plain_setting,
            config_setting,
            for_diagnosis(
                with_details({"pretend-without", SettingKind::list, "NAME",
                              "behave as if the CPU lacked this feature; 'vdso': as another "
                              "kernel; 'delegation': never answer for files of the initiator, "
                              "'lookups': nor for its paths, 'breaks': nor for brk(2)"},
                             details::pretend_without)),
        },
        false,
        0,
        acceptor_notes};
    return spec;
}

Result<AcceptorOptions> make_acceptor_options(const ParsedCommand& parsed,
                                              const Environment& environment) {
    GPR_TRY(const GatheredSettings gathered,
            gather_settings(acceptor_spec(), parsed.flags, environment));
    const Settings& settings = gathered.settings;
    AcceptorOptions options;
    options.listen = settings.list("listen");
    options.token_file = settings.text("token-file");
    options.plain_allowed = settings.toggle("plain");
    options.metrics = settings.text("metrics");
    options.log_file = settings.text("log");
    options.log_level = settings.text("log-level", options.log_level);
    options.exports = settings.list("export");
    for (std::string& path : options.exports) {
        if (!path.starts_with('/')) {
            return fail(fmt::format("--export wants an absolute path, not '{}'", path));
        }
        path = fs::path(path).lexically_normal().string();
        if (path.size() > 1 && path.ends_with('/')) path.pop_back();
        if (path == "/") path = "/*";  // everything below it
    }
    options.network.raw = settings.toggle("allow-raw-network");
    options.network.host = settings.toggle("allow-host-network");
    options.network.sockets = options.network.is_of_host() || settings.toggle("allow-network");
    options.pretend_without = settings.list("pretend-without");
    for (const std::string& name : options.pretend_without) {
        CpuDescription any;
        if (!is_ours(name) && !hide_feature(any, name)) {
            return fail(fmt::format("--pretend-without knows no CPU feature '{}'", name));
        }
    }
    if (settings.has("max-sessions")) {
        GPR_TRY(options.max_sessions, parse_count(settings.text("max-sessions"), "max-sessions"));
    }
    if (settings.has("session-ports")) {
        NetworkAllowance& network = options.network;
        if (!network.sockets || network.is_of_host()) {
            return fail(
                "--session-ports is for networks of sessions' own, which only --allow-network, "
                "without a wider one, gives");
        }
        GPR_TRY(network.ports, parse_port_range(settings.text("session-ports")));
        GPR_TRY(network.ports_each, share_of_ports(network.ports, options.max_sessions));
    }
    GPR_CHECK(take_cache(settings, options));
    if (settings.has("drain")) {
        GPR_TRY(const auto drain, parse_duration(settings.text("drain")));
        options.drain_s = static_cast<unsigned>(std::min(drain, longest_drain).count());
    }
    GPR_TRY(options.limits, session_limits(settings));
    options.limits_memory = !settings.has("session-memory");
    options.limits_tasks = !settings.has("session-pids");
    options.user_ids_wanted = settings.has("uid-range");
    if (options.user_ids_wanted) {
        GPR_TRY(options.user_ids, parse_user_ids(settings.text("uid-range")));
    }
    if (!is_log_level(options.log_level)) {
        return fail(fmt::format("no log level is called '{}'", options.log_level));
    }
    if (options.listen.empty()) {
        return fail("no address to listen on; add '--listen HOST:PORT' or '--listen unix:/path'");
    }
    for (const std::string& address : options.listen) {
        GPR_CHECK(parse_endpoint(address, options.plain_allowed));
    }
    if (options.token_file.empty()) {
        return fail(
            "nothing listens without a token; run 'gpr token new --file FILE' and add"
            " '--token-file FILE'");
    }
    return options;
}

int acceptor_main(const Words& arguments) {
    const auto parsed = parse_command(acceptor_spec(), arguments);
    if (!parsed) {
        complain(parsed.error().message());
        return exit_usage;
    }
    if (parsed->wants_help) {
        std::fputs(help_text(acceptor_spec()).c_str(), stdout);
        return 0;
    }
    const auto options =
        make_acceptor_options(*parsed, [](const char* name) { return getenv(name); });
    if (!options) {
        complain(options.error().message());
        return exit_usage;
    }
    return run_acceptor_daemon(*options);
}

namespace {

std::optional<ContentCache> contents_of(const AcceptorOptions& options, const std::string& token) {
    if (options.cache_folder.empty()) return std::nullopt;
    auto folder = open_content_folder(options.cache_folder, token);
    if (!folder) spdlog::warn("{}: contents are not kept", folder.error().message());
    if (!folder) return std::nullopt;
    return ContentCache(std::move(*folder), options.cache_bytes);
}

}  // namespace

int serve_session_main(const Words&) {
    auto session = receive_session();
    if (!session) {
        complain(session.error().message());
        return exit_usage;
    }
    prctl(PR_SET_NAME, worker_process_name);
    const AcceptorOptions options = session->order.options;
    // The daemon has opened it, too. A session can run without a log.
    static_cast<void>(start_logging(options.log_file, options.log_level));
    const auto& without = options.pretend_without;
    auto lacks = [&](std::string_view name) {
        return std::ranges::find(without, name) != without.end();
    };
    WorkerOptions worker{lacks(pretended_vdso),        options.drain_s != 0,
                         !lacks(pretended_delegation), !lacks(pretended_lookups),
                         !lacks(pretended_breaks),     nullptr};
    std::optional<SharedTally> tally;
    if (session->tally) {
        auto mapped = SharedTally::map(std::move(session->tally));
        if (mapped) worker.tally = &tally.emplace(std::move(*mapped));
    }
    const auto serve = [&](EstablishedInitiator peer, Sandbox& box) {
        auto contents = contents_of(options, peer.token_id);
        if (contents) worker.contents.emplace(std::move(*contents));
        const int status = run_worker(std::move(peer), box, std::move(worker));
        if (contents) prune_contents(options.cache_folder, options.cache_bytes);
        return status;
    };
    return serve_ordered(std::move(*session), serve);
}

}  // namespace gpr
