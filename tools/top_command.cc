// `gpr top [PID]`: what the threads of sessions do at this moment, again and again.
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <thread>

#include "base/address.h"
#include "tools/common_settings.h"
#include "tools/count.h"
#include "tools/sessions.h"
#include "tools/table.h"

namespace gpr {
namespace {

using Clock = std::chrono::steady_clock;

const CommandSpec& top_spec() {
    static const CommandSpec spec{
        "top",
        "[OPTION]... [PID]",
        "Show live what the threads of sessions do: crossings, faults, calls and memory moved, a "
        "second;\nwith PID, of the session that has that process. 'q' leaves.",
        {{"count", SettingKind::text, "COUNT", "leave after so many pictures", false, 'n'},
         {"delay", SettingKind::text, "SECONDS", "between two pictures, such as 0.5 (2)", false,
          'd'},
         {"all", SettingKind::toggle, "", "sessions of all users, which root may", false, 'a'},
         json_setting},
        false,
        1,
        "Without a terminal one picture follows the other. The first one begins when one DELAY "
        "has\n"
        "passed: what it shows has happened in that time. The busiest threads come first; on a\n"
        "terminal those that fit.\n\n"
        "exit status: 0; 1 no session was found, or did not answer"};
    return spec;
}

struct ThreadRates {
    std::string name, where, state, waits_for;
    double pid = 0, tid = 0;
    double cpu = 0;                                          // share of one processor
    double crossings = 0, faults = 0, calls = 0, bytes = 0;  // a second

    [[nodiscard]] double weight() const { return 100 * cpu + crossings + faults + calls; }
};

struct Totals {
    double cpu = 0, crossings = 0, faults = 0, calls = 0, pages = 0;
};

double sum_at(const nlohmann::json& thread, const char* key, const char* one, const char* two) {
    const nlohmann::json& object = object_at(thread, key);
    return number_at(object, one) + number_at(object, two);
}

Totals totals_of(const nlohmann::json& thread) {
    return {sum_at(thread, "cpu_s", "home", "away"), sum_at(thread, "crossings", "out", "back"),
            sum_at(thread, "faults", "home", "away"), number_at(thread, "calls_home"),
            sum_at(thread, "pages_in", "home", "away")};
}

// One session, from one picture to the next.
class Watched {
public:
    explicit Watched(ListedSession session) : session_(std::move(session)) {}

    // False: it does not answer any more.
    bool look() {
        const auto about = session_.client.ask({{"want", "session"}});
        const auto threads = session_.client.ask({{"want", "threads"}});
        if (!about || !threads) return false;
        const auto now = Clock::now();
        seconds_ = std::max(1e-3, std::chrono::duration<double>(now - looked_at_).count());
        looked_at_ = now;
        moved_ = number_at(*about, "bytes_moved") - number_at(session_.about, "bytes_moved");
        session_.about = *about;
        std::map<std::pair<double, double>, Totals> before = std::exchange(totals_, {});
        rates_.clear();
        for (const nlohmann::json& each : object_at(*threads, "threads")) {
            const std::pair key{number_at(each, "pid"), number_at(each, "tid")};
            const Totals total = totals_[key] = totals_of(each);
            const auto old = before.find(key);
            rates_.push_back(rates(each, total, old == before.end() ? Totals{} : old->second));
        }
        std::ranges::stable_sort(rates_, std::ranges::greater{}, &ThreadRates::weight);
        return true;
    }

    [[nodiscard]] std::string head() const {
        const nlohmann::json& threads = object_at(session_.about, "threads");
        return fmt::format("{} {}: {} threads at home, {} away; {}/s over the links",
                           session_.client.pid(), text_at(session_.about, "program"),
                           number_at(threads, "home"), number_at(threads, "away"),
                           megabytes_text(moved_ / seconds_));
    }
    [[nodiscard]] const std::vector<ThreadRates>& rates() const { return rates_; }
    [[nodiscard]] nlohmann::json json() const {
        nlohmann::json list = nlohmann::json::array();
        for (const ThreadRates& r : rates_) {
            list.push_back({{"pid", r.pid},
                            {"tid", r.tid},
                            {"name", r.name},
                            {"where", r.where},
                            {"state", r.state},
                            {"waits_for", r.waits_for},
                            {"cpu", r.cpu},
                            {"crossings_per_s", r.crossings},
                            {"faults_per_s", r.faults},
                            {"calls_per_s", r.calls},
                            {"bytes_per_s", r.bytes}});
        }
        return {{"session", session_.client.pid()},
                {"bytes_per_s", moved_ / seconds_},
                {"threads", list}};
    }

private:
    [[nodiscard]] ThreadRates rates(const nlohmann::json& thread, const Totals& now,
                                    const Totals& before) const {
        ThreadRates r;
        r.name = text_at(thread, "name");
        r.where = text_at(thread, "where");
        r.state = text_at(thread, "state");
        r.waits_for = text_at(thread, "waits_for");
        r.pid = number_at(thread, "pid");
        r.tid = number_at(thread, "tid");
        const auto rate = [&](double Totals::*of) {
            return std::max(0.0, now.*of - before.*of) / seconds_;
        };
        r.cpu = rate(&Totals::cpu);
        r.crossings = rate(&Totals::crossings);
        r.faults = rate(&Totals::faults);
        r.calls = rate(&Totals::calls);
        r.bytes = rate(&Totals::pages) * static_cast<double>(page_size);
        return r;
    }

    ListedSession session_;
    Clock::time_point looked_at_;
    double seconds_ = 1, moved_ = 0;
    std::map<std::pair<double, double>, Totals> totals_;
    std::vector<ThreadRates> rates_;
};

// Keys one by one, and as before when it is gone.
class Terminal {
public:
    Terminal() {
        if (isatty(STDOUT_FILENO) != 1) return;
        shows_ = true;
        std::fputs("\033[?1049h\033[?25l", stdout);
        if (isatty(STDIN_FILENO) != 1 || tcgetattr(STDIN_FILENO, &before_) != 0) return;
        termios keys = before_;
        keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        reads_ = tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
    }
    ~Terminal() {
        if (reads_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
        if (shows_) std::fputs("\033[?25h\033[?1049l", stdout);
        std::fflush(stdout);
    }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    [[nodiscard]] bool shows() const { return shows_; }
    [[nodiscard]] static size_t lines() { return size().ws_row > 0 ? size().ws_row : 24; }
    [[nodiscard]] static size_t columns() { return size().ws_col > 0 ? size().ws_col : 80; }

    // Until the time is over; true: somebody wants to leave.
    bool wait(Clock::time_point until) const {
        for (;;) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
            if (leaves != 0) return true;
            if (left.count() <= 0) return false;
            pollfd key{reads_ ? STDIN_FILENO : -1, POLLIN, 0};
            if (poll(&key, 1, static_cast<int>(left.count())) <= 0) continue;
            char typed = 0;
            if (read(STDIN_FILENO, &typed, 1) != 1 || typed == 'q' || typed == 'Q') return true;
        }
    }

    static volatile sig_atomic_t leaves;

private:
    static winsize size() {
        winsize size{};
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
        return size;
    }

    bool shows_ = false, reads_ = false;
    termios before_{};
};
volatile sig_atomic_t Terminal::leaves = 0;

std::string picture(const std::vector<Watched>& sessions) {
    std::string heads;
    std::vector<std::vector<std::string>> rows{{"PID", "TID", "NODE", "CPU %", "CROSS/S",
                                                "FAULTS/S", "CALLS/S", "MB/S", "NAME", "STATE",
                                                "WAITS FOR"}};
    for (const Watched& session : sessions) {
        heads += session.head() + "\n";
        for (const ThreadRates& r : session.rates()) {
            rows.push_back({fmt::format("{}", r.pid), fmt::format("{}", r.tid), r.where,
                            fmt::format("{:.0f}", 100 * r.cpu), fmt::format("{:.0f}", r.crossings),
                            fmt::format("{:.0f}", r.faults), fmt::format("{:.0f}", r.calls),
                            fmt::format("{:.1f}", r.bytes / 1e6), r.name, r.state, r.waits_for});
        }
    }
    return heads + "\n" + format_table(rows);
}

// What fits on the terminal.
std::string cut(const std::string& text, size_t lines, size_t columns) {
    std::string shown;
    size_t begin = 0;
    for (size_t line = 0; line < lines && begin < text.size(); line++) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        shown += (line == 0 ? "" : "\r\n") + text.substr(begin, std::min(end - begin, columns));
        begin = end + 1;
    }
    return shown;
}

void show(const std::vector<Watched>& sessions, const Terminal& terminal, bool as_json) {
    if (as_json) {
        nlohmann::json list = nlohmann::json::array();
        for (const Watched& each : sessions) list.push_back(each.json());
        fmt::print("{}\n", nlohmann::json{{"version", 1}, {"sessions", list}}.dump());
    } else if (terminal.shows()) {
        fmt::print("\033[H\033[J{}",
                   cut(picture(sessions), Terminal::lines(), Terminal::columns()));
    } else {
        fmt::print("{}\n", picture(sessions));
    }
    std::fflush(stdout);
}

struct TopOptions {
    uint64_t pictures = 0;  // 0: until somebody leaves
    std::chrono::milliseconds delay{2000};
    bool as_json = false;
};

int watch(std::vector<Watched> sessions, const TopOptions& options) {
    std::erase_if(sessions, [](Watched& each) { return !each.look(); });
    const auto leave = [](int) { Terminal::leaves = 1; };
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, leave);
    const Terminal terminal;
    for (uint64_t shown = 0; options.pictures == 0 || shown < options.pictures; shown++) {
        if (terminal.wait(Clock::now() + options.delay)) return 0;
        std::erase_if(sessions, [](Watched& each) { return !each.look(); });
        if (sessions.empty()) return 0;
        show(sessions, terminal, options.as_json);
    }
    return 0;
}

Result<TopOptions> top_options(const Settings& asked) {
    TopOptions options;
    options.as_json = asked.toggle(json_setting.name);
    if (asked.has("count")) {
        GPR_TRY(options.pictures, parse_count(asked.text("count"), "count"));
    }
    if (asked.has("delay")) {
        GPR_TRY(const uint32_t thousandths, parse_thousandths(asked.text("delay"), "delay"));
        options.delay = std::chrono::milliseconds(thousandths);
    }
    return options;
}

int show_top(const ParsedCommand& parsed) {
    const Settings asked({parsed.flags});
    const auto options = top_options(asked);
    if (!options) {
        complain(options.error().message());
        return exit_usage;
    }
    if (!parsed.words.empty()) {
        return with_session(parsed, [&](const ListedSession& session, pid_t) {
            return watch({Watched(session)}, *options);
        });
    }
    if (asked.toggle("all") && geteuid() != 0) {
        complain("sessions of all users are for root; run 'sudo gpr top -a'");
        return exit_usage;
    }
    std::vector<Watched> sessions;
    const auto mute = [](const Error& error) { complain(error.message()); };
    for (ListedSession& each : list_sessions(asked.toggle("all"), mute)) {
        sessions.emplace_back(std::move(each));
    }
    if (sessions.empty()) {
        complain("there are no sessions of this user here; 'gpr exec' starts one");
        return exit_failed;
    }
    return watch(std::move(sessions), *options);
}

}  // namespace

int top_main(const Words& arguments) { return run_observer(top_spec(), arguments, show_top); }

}  // namespace gpr
