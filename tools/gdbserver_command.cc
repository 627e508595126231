// `gpr gdbserver PID`: lets gdb debug a process of a session, over gdb's remote protocol.
// `gpr gdbserver -- PROGRAM`: the same from the program's first instruction on.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "base/fd.h"
#include "tools/exec_command.h"
#include "tools/sessions.h"
#include "transport/endpoint.h"

namespace gpr {

const CommandSpec& gdbserver_spec() {
    static const CommandSpec spec{
        "gdbserver",
        "[--listen ADDR] PID | [--listen ADDR] [EXEC'S OPTION]... -- PROGRAM [ARG]...",
        "Let gdb debug a process of a session: all of its threads and memory, wherever they are. "
        "In gdb:\n\n"
        "  (gdb) target remote | gpr gdbserver PID\n\n"
        "The process stops, and its threads come to this host while it is stopped. With PROGRAM "
        "behind '--', that is begun as by 'gpr exec', with its options, and stands before its "
        "first "
        "instruction until gdb continues it.",
        {{"listen", SettingKind::text, "ADDR",
          "wait for one gdb at this TCP address, such as 127.0.0.1:2345 or :0, instead of speaking "
          "on standard input and output. Whoever connects first may do anything with the process"}},
        false,
        1,
        "exit status: 0 when gdb has gone; 1 the process cannot be debugged, and why is said; 125, "
        "126 or 127 as for exec, if PROGRAM cannot be started",
        "A PROGRAM that is begun here, without --listen, reads nothing on standard input and "
        "writes "
        "to standard error, since gdb speaks on the others. With --listen it is 'gpr exec --gdb "
        "ADDR': it has gpr's own.\n\nWhen gdb detaches, or its connection is lost, the process "
        "goes "
        "on without breakpoints. A PROGRAM that was begun here is ended when gdb quits."};
    return spec;
}

namespace {

// Copies what can be read from one side to the other. False at the end of input.
bool pass_on(int from, int to) {
    std::array<char, 65536> bytes{};
    const ssize_t got = read(from, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) return true;
    if (got <= 0) return false;
    for (ssize_t done = 0; done < got;) {
        const ssize_t wrote = write(to, bytes.data() + done, static_cast<size_t>(got - done));
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return false;
        done += wrote;
    }
    return true;
}

void relay(int from_gdb, int to_gdb, int session) {
    std::array<pollfd, 2> ends{{{from_gdb, POLLIN, 0}, {session, POLLIN, 0}}};
    for (;;) {
        if (poll(ends.data(), ends.size(), -1) < 0 && errno != EINTR) return;
        if (ends[1].revents != 0 && !pass_on(session, to_gdb)) return;
        if (ends[0].revents != 0 && !pass_on(from_gdb, session)) return;
    }
}

Result<Fd> wait_for_gdb(const std::string& address, pid_t pid) {
    GPR_TRY(Endpoint endpoint, parse_endpoint(address, true));
    GPR_TRY(std::vector<Listener> listeners, Listener::listen(endpoint));
    std::vector<pollfd> polled;
    for (const Listener& each : listeners) polled.push_back({each.fd(), POLLIN, 0});
    std::fprintf(stderr, "gpr: process %d waits for gdb; type there: target remote %s\n", pid,
                 listeners.front().endpoint().text().c_str());
    for (;;) {
        if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) {
            return fail(errno, "cannot wait for gdb at " + address);
        }
        for (size_t i = 0; i < polled.size(); i++) {
            if (!(polled[i].revents & POLLIN)) continue;
            Fd fd(accept4(polled[i].fd, nullptr, nullptr, SOCK_CLOEXEC));
            if (fd) return fd;
        }
    }
}

// The program is a child. Its standard input and output are gdb's here.
int begin_for_pipe(const Words& arguments) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        complain("cannot create a socket pair");
        return exit_failed;
    }
    const Fd ours(ends[0]);
    Fd its(ends[1]);
    const pid_t program = fork();
    if (program == 0) {
        dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        setpgid(0, 0);  // gdb's Ctrl-C is not for it
        _exit(exec_debugged(arguments, its.get()));
    }
    if (program < 0) {
        complain("cannot make a process for the program");
        return exit_failed;
    }
    its = Fd();
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGINT, SIG_IGN);
    relay(STDIN_FILENO, STDOUT_FILENO, ours.get());
    int status = 0;
    const bool over = waitpid(program, &status, WNOHANG) == program && WIFEXITED(status);
    const int code = over ? WEXITSTATUS(status) : 0;
    return code >= exit_gpr_failed && code <= exit_not_found ? code : 0;
}

// arguments: of `gpr gdbserver`, with '--' before the program.
int begin_program(const Words& arguments) {
    Words rest;
    std::string address;
    constexpr std::string_view listen = "--listen";
    for (size_t i = 0; i < arguments.size(); i++) {
        if (arguments[i] == "--") {
            rest.insert(rest.end(), arguments.begin() + static_cast<ptrdiff_t>(i), arguments.end());
            break;
        }
        const bool joined = arguments[i].starts_with("--listen=");
        if (arguments[i] == listen && i + 1 < arguments.size()) {
            address = arguments[++i];
        } else if (joined) {
            address = arguments[i].substr(listen.size() + 1);
        } else {
            rest.push_back(arguments[i]);
        }
    }
    if (address.empty()) return begin_for_pipe(rest);
    rest.insert(rest.begin(), {"--gdb", address});
    return exec_debugged(rest, -1);
}

int serve(const ListedSession& session, pid_t pid, const std::string& address) {
    Fd gdb;
    if (!address.empty()) {
        auto accepted = wait_for_gdb(address, pid);
        if (!accepted) {
            complain(accepted.error().message());
            return exit_failed;
        }
        gdb = std::move(*accepted);
    }
    const auto debugged = session.client.debug(pid);
    if (!debugged) {
        complain(debugged.error().message());
        return exit_failed;
    }
    std::signal(SIGPIPE, SIG_IGN);
    // gdb's Ctrl-C goes to all processes of its terminal; it is gdb that tells us of it.
    if (!gdb) std::signal(SIGINT, SIG_IGN);
    relay(gdb ? gdb.get() : STDIN_FILENO, gdb ? gdb.get() : STDOUT_FILENO, debugged->get());
    return 0;
}

}  // namespace

int gdbserver_main(const Words& arguments) {
    if (std::ranges::find(arguments, "--") != arguments.end()) return begin_program(arguments);
    return run_observer(gdbserver_spec(), arguments, [](const ParsedCommand& parsed) {
        const std::string address = Settings({parsed.flags}).text("listen");
        if (address.empty() && isatty(STDIN_FILENO) == 1) {
            complain(
                "gpr gdbserver is for gdb; type there: target remote | gpr gdbserver PID, or "
                "use --listen");
            return exit_usage;
        }
        return with_session(parsed, [&](const ListedSession& session, pid_t pid) {
            return serve(session, program_of(session, pid), address);
        });
    });
}

}  // namespace gpr
