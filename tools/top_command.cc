// `gpr top [PID|ADDR]`: what the threads of sessions do at this moment, again and again.
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "tools/common_settings.h"
#include "tools/count.h"
#include "tools/sessions.h"
#include "tools/top_screen.h"

namespace gpr {

const CommandSpec& top_spec() {
    static const CommandSpec spec{
        "top",
        "[OPTION]... [PID|ADDR]",
        "Show live what the threads of sessions do: crossings, faults, calls and memory moved, a "
        "second.\nWith PID those of the session that has that process; with ADDR the sessions at "
        "that acceptor.\n'q' leaves.",
        {{"count", SettingKind::text, "COUNT", "leave after so many pictures", false, 'n'},
         {"delay", SettingKind::text, "SECONDS", "between two pictures, such as 0.5 (2)", false,
          'd'},
         {"all", SettingKind::toggle, "", "sessions of all users, which root may", false, 'a'},
         json_setting,
         token_file_setting,
         plain_setting,
         config_setting},
        false,
        1,
        "Without a terminal one picture follows the other. The first one begins when one DELAY "
        "has\npassed: what it shows has happened in that time. The busiest come first; on a "
        "terminal those\nthat fit. With ADDR, crossings, faults and calls are those that the "
        "acceptor saw.\n\n"
        "exit status: 0; 1 no session was found, or did not answer"};
    return spec;
}

namespace {

using Clock = std::chrono::steady_clock;

volatile sig_atomic_t somebody_leaves = 0;

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

    // Until the time is over; true: somebody wants to leave.
    [[nodiscard]] bool wait(Clock::time_point until) const {
        for (;;) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
            if (somebody_leaves != 0) return true;
            if (left.count() <= 0) return false;
            pollfd key{reads_ ? STDIN_FILENO : -1, POLLIN, 0};
            if (poll(&key, 1, static_cast<int>(left.count())) <= 0) continue;
            char typed = 0;
            if (read(STDIN_FILENO, &typed, 1) != 1 || typed == 'q' || typed == 'Q') return true;
        }
    }

    void show(const std::string& picture) const {
        if (!shows_) {
            fmt::print("{}\n", picture);
        } else {
            fmt::print("\033[H\033[J{}", what_fits(picture));
        }
        std::fflush(stdout);
    }

private:
    static std::string what_fits(const std::string& text) {
        winsize size{};
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
        const size_t lines = size.ws_row > 0 ? size.ws_row : 24;
        const size_t columns = size.ws_col > 0 ? size.ws_col : 80;
        std::string shown;
        size_t begin = 0;
        for (size_t line = 0; line < lines && begin < text.size(); line++) {
            const size_t end = std::min(text.find('\n', begin), text.size());
            shown += (line == 0 ? "" : "\r\n") + text.substr(begin, std::min(end - begin, columns));
            begin = end + 1;
        }
        return shown;
    }

    bool shows_ = false, reads_ = false;
    termios before_{};
};

struct TopOptions {
    uint64_t pictures = 0;  // 0: until somebody leaves
    std::chrono::milliseconds delay{2000};
    bool as_json = false;
};

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

// Until somebody leaves, or the sessions have ended.
Result<> watch(TopScreen& screen, const TopOptions& options) {
    GPR_CHECK(screen.look());
    const auto leave = [](int) { somebody_leaves = 1; };
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, leave);
    const Terminal terminal;
    for (uint64_t shown = 0; options.pictures == 0 || shown < options.pictures; shown++) {
        if (terminal.wait(Clock::now() + options.delay)) return {};
        const auto is_there = screen.look();
        if (somebody_leaves != 0) return {};  // which may have cut the look short
        if (!is_there) return tl::make_unexpected(is_there.error());
        if (!*is_there) return {};
        if (options.as_json) {
            print_json(screen.json(), -1);
        } else {
            terminal.show(screen.picture());
        }
    }
    return {};
}

Result<std::unique_ptr<TopScreen>> wanted_screen(const ParsedCommand& parsed) {
    const bool everybody = Settings({parsed.flags}).toggle("all");
    if (everybody && geteuid() != 0) {
        return fail("sessions of all users are for root; run 'sudo gpr top -a'");
    }
    if (parsed.words.empty()) return screen_of_sessions(0, everybody);
    const std::string& word = parsed.words.front();
    if (word.find_first_not_of("0123456789") == std::string::npos) {
        GPR_TRY(const pid_t pid, parse_pid(word));
        return screen_of_sessions(pid, everybody);
    }
    GPR_TRY(GatheredSettings gathered, gather_settings(top_spec(), parsed.flags, [](auto* name) {
                return static_cast<const char*>(getenv(name));
            }));
    std::string address = address_of(word, gathered);
    return screen_of_acceptor(std::move(address), std::move(gathered.settings));
}

int show_top(const ParsedCommand& parsed) {
    const auto options = top_options(Settings({parsed.flags}));
    auto screen = wanted_screen(parsed);
    if (!options || !screen) {
        complain((options ? screen.error() : options.error()).message());
        return exit_usage;
    }
    // The terminal is as before when somebody is told why.
    if (const auto watched = watch(**screen, *options); !watched) {
        complain(watched.error().message());
        return exit_failed;
    }
    return 0;
}

}  // namespace

int top_main(const Words& arguments) { return run_observer(top_spec(), arguments, show_top); }

}  // namespace gpr
