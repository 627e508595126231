#include "monitor/launch/run.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

#include "monitor/home/session.h"
#include "monitor/home/session_outputs.h"
#include "monitor/launch/connections.h"
#include "monitor/launch/session_host.h"
#include "monitor/node/process_names.h"
#include "monitor/rules/device_variables.h"
#include "monitor/rules/split_policy.h"
#include "monitor/tracee/files_limit.h"
#include "monitor/tracee/ptrace.h"
#include "syscall/resting_filter.h"

extern char** environ;

namespace gpr {

namespace {

// Messages between the process that becomes the program and the monitor, before the exec.
enum class Word : int { ready, failed, go };

// How to start the program; follows Word::ready.
struct Launch {
    int fd_base = 0;  // the lowest descriptor number of an acceptor; 0: none has descriptors
    bool calls_watched = false, names_watched = false;
    char tunables[4096] = "";  // value for GLIBC_TUNABLES; empty: unchanged
};

void complain(const std::string& what) { std::fprintf(stderr, "gpr: %s\n", what.c_str()); }

// Use sendmsg and recvmsg, which even a filter that reports all other calls allows.
template <class Packet>
bool send_packet(int fd, const Packet& packet) {
    iovec part{const_cast<Packet*>(&packet), sizeof packet};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    return ::sendmsg(fd, &header, MSG_NOSIGNAL) == sizeof packet;
}

template <class Packet>
bool receive_packet(int fd, Packet& packet) {
    iovec part{&packet, sizeof packet};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    return ::recvmsg(fd, &header, 0) == sizeof packet;
}

struct WordPacket {
    Word word;
    int value;
};

bool send_word(int fd, Word word, int value = 0) {
    return send_packet(fd, WordPacket{word, value});
}

bool receive_word(int fd, Word& word, int& value) {
    WordPacket packet{};
    if (!receive_packet(fd, packet)) return false;
    word = packet.word;
    value = packet.value;
    return true;
}

// Environment variables for the program. Received before the filter is installed, because receiving
// allocates memory.
constexpr size_t most_text_bytes = 64 << 10;

bool send_text(int fd, const std::string& text) {
    return ::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

std::string receive_text(int fd) {
    std::string text(most_text_bytes, '\0');
    text.resize(static_cast<size_t>(std::max<ssize_t>(0, ::recv(fd, text.data(), text.size(), 0))));
    return text;
}

// Keeps the program's descriptor numbers below those of the acceptors.
void keep_below(int fd_base) {
    rlimit limit{};
    if (fd_base == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    auto most = static_cast<rlim_t>(fd_base);
    limit = {std::min(limit.rlim_cur, most), std::min(limit.rlim_max, most)};
    setrlimit(RLIMIT_NOFILE, &limit);
}

// The monitor keeps none of the program's descriptors except stderr, for its last messages, and
// `kept`.
void detach_from_program(std::vector<int> kept) {
    setsid();
    prctl(PR_SET_NAME, monitor_process_name);
    for (int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE}) {
        ::signal(signal, SIG_IGN);
    }
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    if (fcntl(STDERR_FILENO, F_GETFD) < 0) dup2(null, STDERR_FILENO);
    std::sort(kept.begin(), kept.end());
    unsigned next = STDERR_FILENO + 1;
    for (const int fd : kept) {
        const auto number = static_cast<unsigned>(std::max(fd, 0));
        if (number > next) close_range(next, number - 1, 0);
        next = std::max(next, number + 1);
    }
    close_range(next, ~0U, 0);
}

// The GLIBC_TUNABLES that hide from the program's C library what the acceptors' CPUs lack.
Result<std::string> tunables_for(const ExecOptions& options,
                                 const std::vector<SessionHost::Peer>& peers) {
    const char* now = getenv("GLIBC_TUNABLES");
    const std::string before = now ? now : "";
    std::string tunables = before;
    for (const SessionHost::Peer& peer : peers) {
        auto met = meet_lacks(options, tunables, peer.lacking);
        if (!met) return fail(fmt::format("acceptor {} {}", peer.name, met.error().what));
        tunables = *met;
    }
    if (tunables.size() >= sizeof Launch::tunables) return fail("GLIBC_TUNABLES is too long");
    return tunables == before ? "" : tunables;
}

std::string variables_for(const ExecOptions& options, const std::vector<SessionHost::Peer>& peers) {
    std::vector<Device> devices;
    for (const SessionHost::Peer& peer : peers) {
        devices.insert(devices.end(), peer.welcome.devices.begin(), peer.welcome.devices.end());
    }
    auto variables = device_variables(devices);
    variables.insert(variables.end(), options.variables.begin(), options.variables.end());
    return variables_text(variables);
}

// A program under a debugger is split from its first instruction on.
bool begins_at_rest(const ExecOptions& options, const GdbWanted& gdb) {
    return SplitPolicy(options.rules).rests() && !gdb.is_wanted();
}

int run_monitor(const ExecOptions& options, const StartLocalAcceptor& start_local,
                const GdbWanted& gdb, pid_t program, int channel, int trace_reader) {
    auto give_up = [&](const std::string& why) {
        complain(why);
        send_word(channel, Word::failed);
        return exit_gpr_failed;
    };
    auto outputs = SessionOutputs::open(options);
    if (!outputs) return give_up(outputs.error().message());
    std::vector<int> kept = outputs->descriptors();
    kept.push_back(channel);
    if (trace_reader >= 0) kept.push_back(trace_reader);
    if (gdb.socket >= 0) kept.push_back(gdb.socket);
    detach_from_program(std::move(kept));
    if (auto begun = outputs->begin(); !begun) return give_up(begun.error().message());
    auto host = SessionHost::prepare(options, *outputs, start_local, program, options.program);
    if (!host) return give_up(host.error().message());
    if (auto listens = (*host)->await_gdb(gdb); !listens) {
        return give_up(listens.error().message());
    }
    auto tunables = tunables_for(options, (*host)->peers());
    if (!tunables) return give_up(tunables.error().message());
    const std::string variables = variables_for(options, (*host)->peers());
    auto made = (*host)->make_session();
    if (!made) return give_up(made.error().message());
    HomeSession& session = (*host)->session();
    if (trace_reader >= 0) {
        auto traced = (*host)->trace_to(Fd(trace_reader));
        if (!traced) return give_up(traced.error().message());
    }
    Launch launch{(*host)->fd_base(), (*host)->watches_calls(), (*host)->watches_names()};
    const auto files = FilesLimit::of(program, static_cast<rlim_t>(launch.fd_base));
    tunables->copy(launch.tunables, sizeof launch.tunables - 1);
    if (!send_word(channel, Word::ready) || !send_packet(channel, launch) ||
        !send_text(channel, variables)) {
        return exit_gpr_failed;
    }
    (*host)->begin_control();  // while the program installs its filter
    Word word;
    int listener_number = -1;
    if (!receive_word(channel, word, listener_number)) return exit_gpr_failed;
    auto seized = trace::seize(program, trace::home_options);
    if (!seized) return give_up(seized.error().message());
    if (begins_at_rest(options, gdb)) {
        session.start_resting(program, home_filter_for(options, launch.fd_base, false));
    } else {
        Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, program, 0)));
        Fd listener(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), listener_number, 0)));
        if (!listener) return give_up("cannot take over the seccomp listener");
        session.start(program, std::move(listener));
    }
    session.note_files_limit(files);
    if (gdb.is_wanted()) session.await_debugger();
    send_word(channel, Word::go);
    close(channel);
    return (*host)->run();
}

std::vector<sock_filter> filter_for(const ExecOptions& options, const Launch& launch, bool rests) {
    return rests ? resting_filter(launch.fd_base != 0 && !launch.names_watched)
                 : home_filter_for(options, launch.fd_base, launch.calls_watched);
}

// Returns the filter's listener, or 0 if the process rests at first and its filter has none.
Result<int> install_filter(const std::vector<sock_filter>& filter, bool rests) {
    sock_fprog program{static_cast<unsigned short>(filter.size()),
                       const_cast<sock_filter*>(filter.data())};
    auto install = [&] {
        return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                        rests ? 0 : SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
    };
    int listener = install();
    if (listener < 0 && errno == EACCES) {
        // Without CAP_SYS_ADMIN a filter requires no_new_privs, so set-user-ID programs run without
        // privileges.
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        listener = install();
    }
    // A process can have only one seccomp listener, its parent's included.
    if (listener < 0 && errno == EBUSY) {
        return fail(
            "gpr cannot run inside gpr, or where something else supervises all system calls");
    }
    if (listener < 0) return fail(errno, "cannot install the seccomp filter");
    return listener;
}

// A grandchild, so that the program has no child that it does not know of. The child in between
// gets no memory of its own, as we wait until it has ended.
void start_grandchild(const std::function<int()>& work) {
    const pid_t middle = vfork();
    if (middle == 0) {
        const pid_t grandchild = fork();
        if (grandchild != 0) _exit(grandchild < 0 ? 1 : 0);
        _exit(work());
    }
    if (middle > 0) waitpid(middle, nullptr, 0);
}

// What to add to execve's error; the program's file is known to exist.
std::string_view advice_on(int exec_error) {
    switch (exec_error) {
        case ENOENT: return "; its interpreter is missing, and 'gpr explain' names it";
        case ENOEXEC: return "; without a '#!' line it is for a shell: gpr exec ... -- sh FILE";
        default: return "";
    }
}

}  // namespace

int run_exec(const ExecOptions& options, const StartLocalAcceptor& start_local,
             const GdbWanted& gdb, int trace_reader) {
    int channel[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) != 0) {
        complain("cannot create a socket pair");
        return exit_gpr_failed;
    }
    // The program may be started with closed standard descriptors; our socket must not take their
    // numbers.
    for (int& end : channel) {
        if (end > STDERR_FILENO) continue;
        int moved = fcntl(end, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        close(end);
        end = moved;
    }
    // Not for the program.
    if (trace_reader >= 0) fcntl(trace_reader, F_SETFD, FD_CLOEXEC);
    pid_t program = getpid();
    int reaps = 0;
    prctl(PR_GET_CHILD_SUBREAPER, &reaps);
    if (reaps) prctl(PR_SET_CHILD_SUBREAPER, 0);
    start_grandchild([&] {
        close(channel[0]);
        return run_monitor(options, start_local, gdb, program, channel[1], trace_reader);
    });
    close(channel[1]);
    Word word;
    int value = 0;
    auto monitor_says = [&](Word expected) {
        if (!receive_word(channel[0], word, value)) {
            complain("the monitor was killed before the program began");
            return false;
        }
        return word == expected;
    };
    Launch launch;
    // As of an acceptor that has files, where BPF is allowed.
    launch.fd_base = 1;
    const bool names_watched = launch.names_watched = watches_names(options);
    const bool rests = begins_at_rest(options, gdb);
    const auto likely_filter = filter_for(options, launch, rests);  // while the monitor is busy
    if (!monitor_says(Word::ready) || !receive_packet(channel[0], launch)) return exit_gpr_failed;
    set_variables(receive_text(channel[0]));
    keep_below(launch.fd_base);
    if (launch.tunables[0] != 0) setenv("GLIBC_TUNABLES", launch.tunables, 1);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);

    std::vector<char*> arguments;
    arguments.push_back(const_cast<char*>(options.program.c_str()));
    for (const std::string& a : options.args) arguments.push_back(const_cast<char*>(a.c_str()));
    arguments.push_back(nullptr);
    // Never freed: freeing may call brk, which the monitor would not answer yet.
    const bool is_likely = rests && launch.fd_base != 0 && launch.names_watched == names_watched;
    static const std::vector<sock_filter> filter =
        is_likely ? likely_filter : filter_for(options, launch, rests);
    auto listener = install_filter(filter, rests);
    if (!listener) {
        complain(listener.error().message());
        return exit_gpr_failed;
    }
    send_word(channel[0], Word::ready, *listener);
    if (!monitor_says(Word::go)) return exit_gpr_failed;
    if (reaps) prctl(PR_SET_CHILD_SUBREAPER, 1);  // reported to the monitor, which notes it
    execve(options.program_path.c_str(), arguments.data(), environ);
    int error = errno;
    complain(fmt::format("cannot execute {}: {}{}", options.program_path, std::strerror(error),
                         advice_on(error)));
    _exit(error == ENOENT ? exit_not_found : exit_cannot_execute);
}

}  // namespace gpr
