// `gpr view PID`: a page for browsers that shows a session while it runs.
#include <poll.h>

#include <csignal>
#include <cstdio>

#include "tools/common_settings.h"
#include "tools/option_details.h"
#include "tools/session_picture.h"
#include "tools/sessions.h"
#include "tools/view_server.h"

namespace gpr {

const CommandSpec& view_spec() {
    static const CommandSpec spec{
        "view",
        "[OPTION]... PID",
        "Serve a page for a browser that shows live the session that has process PID: its nodes, "
        "where\nits threads are, where its memory is, and which pages and calls go to and fro.",
        {with_details(
            {"listen", SettingKind::text, "ADDR", "where: HOST[:PORT] of the loopback (127.0.0.1)"},
            details::view_listen)},
        false,
        1,
        "It prints the page's address, and goes on until the session ends, or Ctrl-C. Whoever "
        "knows the\naddress may look, with several browsers at once; it changes with each run.\n\n"
        "exit status: 0; 1 the session was not found, or the address cannot be used"};
    return spec;
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds between_looks{100};
constexpr std::chrono::seconds until_nobody_asks{3};

volatile sig_atomic_t somebody_leaves = 0;

// The servers' threads take no signals, so that they interrupt whoever asks the session.
class LeaveSignals {
public:
    LeaveSignals() {
        sigemptyset(&all_);
        for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&all_, number);
        pthread_sigmask(SIG_BLOCK, &all_, nullptr);
    }
    void let_in() const {
        struct sigaction action {};
        action.sa_handler = [](int) { somebody_leaves = 1; };
        for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
        pthread_sigmask(SIG_UNBLOCK, &all_, nullptr);
    }

private:
    sigset_t all_{};
};

void wait(std::chrono::milliseconds time) { poll(nullptr, 0, static_cast<int>(time.count())); }

// Until the session ends, or somebody leaves.
void follow(const ListedSession& session, ViewBoard& board) {
    SessionPicture picture(session, board);
    while (somebody_leaves == 0) {
        if (!picture.look() && somebody_leaves == 0) break;
        wait(between_looks);
    }
    if (somebody_leaves != 0) return;
    board.put_end();
    fmt::print("session {} has ended\n", session.client.pid());
    std::fflush(stdout);
    // Pages that look again are told so.
    const auto until = Clock::now() + until_nobody_asks;
    while (board.is_watched() && somebody_leaves == 0 && Clock::now() < until) wait(between_looks);
}

int show_page(const ParsedCommand& parsed) {
    const Settings asked({parsed.flags});
    const auto address =
        asked.has("listen") ? parse_view_address(asked.text("listen")) : ViewAddress{};
    if (!address) {
        complain(address.error().message());
        return exit_usage;
    }
    return with_session(parsed, [&](const ListedSession& session, pid_t pid) {
        // Root goes on as the session's user: what it serves, and which files it reads, is not for
        // a program to choose.
        const auto became = ProcessSymbols::read_files_as(session.client.owner());
        const LeaveSignals signals;
        ViewBoard board(program_of(session, pid));
        const auto server =
            became ? ViewServer::listen(*address, board) : tl::make_unexpected(became.error());
        if (!server) {
            complain(server.error().message());
            return exit_failed;
        }
        signals.let_in();
        fmt::print("{}\n", (*server)->url());
        std::fflush(stdout);
        follow(session, board);
        return 0;
    });
}

}  // namespace

int view_main(const Words& arguments) { return run_observer(view_spec(), arguments, show_page); }

}  // namespace gpr
