#include <poll.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>

#include "base/fd.h"
#include "monitor/launch/attachable.h"
#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/ptrace.h"
#include "tools/commands.h"
#include "tools/process_number.h"
#include "tools/sessions.h"

namespace gpr {

const CommandSpec& detach_spec() {
    static const CommandSpec spec{
        "detach",
        "PID",
        "Let a split process go on here: all of its threads and pages come back to this host, and "
        "those of\nits descendants that are in the session. What 'gpr attach' has split goes on "
        "without gpr, what 'gpr\nexec' has begun under its supervision.",
        {},
        false,
        1,
        "exit status: 0 when it has come home; 1 it has not, and why is said here or by its "
        "'gpr attach'"};
    return spec;
}

namespace {

constexpr int patience_ms = 20'000, between_looks_ms = 1'000;
constexpr std::chrono::seconds patience_of_exec{30};

// The monitor of a program that `gpr exec` started ignores the signals that would end the program.
bool heeds_sigterm(pid_t monitor) {
    return !(trace::signal_set(monitor, "SigIgn:") >> (SIGTERM - 1) & 1);
}

Result<> ask_session(pid_t pid) {
    GPR_TRY(const ListedSession session, session_with(pid));
    GPR_CHECK(session.client.ask({{"want", "detach"}}, patience_of_exec));
    return {};
}

Result<> detach(pid_t pid) {
    GPR_TRY(const pid_t monitor, monitor_of(pid));
    if (!heeds_sigterm(monitor)) return ask_session(pid);
    const Fd watched(static_cast<int>(syscall(SYS_pidfd_open, monitor, 0)));
    if (!watched || syscall(SYS_pidfd_send_signal, watched.get(), SIGTERM, nullptr, 0) != 0) {
        return fail(errno,
                    fmt::format("cannot ask the monitor of process {} (process {})", pid, monitor));
    }
    // The monitor exits when it has detached.
    pollfd ends{watched.get(), POLLIN, 0};
    for (int waited_ms = 0; waited_ms < patience_ms; waited_ms += between_looks_ms) {
        if (poll(&ends, 1, between_looks_ms) == 1) return {};
        // It loses its acceptor if it is stopped for longer.
        const auto its = scheduled(monitor);
        if (!its || (its->state != 'T' && its->state != 't')) continue;
        return fail(fmt::format(
            "process {0} is not detached: its 'gpr attach', process {1}, is stopped; continue it "
            "with 'kill -CONT {1}', and it detaches",
            pid, monitor));
    }
    return fail(
        fmt::format("process {} is not detached after {} s; its 'gpr attach' (process {}) says why",
                    pid, patience_ms / 1000, monitor));
}

}  // namespace

int detach_main(const Words& arguments) {
    const auto parsed = parse_command(detach_spec(), arguments);
    if (!parsed) {
        complain(parsed.error().message());
        return exit_usage;
    }
    if (parsed->wants_help) {
        std::fputs(help_text(detach_spec()).c_str(), stdout);
        return 0;
    }
    const auto pid = process_number(*parsed, "gpr detach 1234");
    if (!pid) {
        complain(pid.error().message());
        return exit_usage;
    }
    if (const auto done = detach(*pid); !done) {
        complain(done.error().message());
        return exit_failed;
    }
    return 0;
}

}  // namespace gpr
