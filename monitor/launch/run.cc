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
#include <vector>

#include "base/log.h"
#include "base/own_limits.h"
#include "bpf/call_watch.h"
#include "monitor/control/session_control.h"
#include "monitor/home/directory_record.h"
#include "monitor/home/session.h"
#include "monitor/home/session_outputs.h"
#include "monitor/launch/connections.h"
#include "monitor/launch/progress.h"
#include "monitor/node/host_match.h"
#include "monitor/node/process_names.h"
#include "monitor/rules/call_rules.h"
#include "monitor/rules/device_variables.h"
#include "monitor/rules/path_rules.h"
#include "monitor/rules/split_policy.h"
#include "monitor/tracee/mailbox.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/waits.h"
#include "syscall/filter.h"
#include "transport/handshake.h"

extern char** environ;

namespace gpr {

namespace {

// What the program-to-be and the monitor tell each other before the exec.
enum class Word : int { ready, failed, go };

// How the program is to be started, which follows Word::ready.
struct Launch {
    int fd_base = 0;  // from here on descriptors are acceptors'; 0: they have none
    bool calls_watched = false;
    char tunables[4096] = "";  // for GLIBC_TUNABLES; empty: as they are
};

void complain(const std::string& what) { std::fprintf(stderr, "gpr: %s\n", what.c_str()); }

// By sendmsg and recvmsg, which a filter that reports all else still lets pass.
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

// What the program's environment must have. Before the filter is on: it takes memory.
constexpr size_t most_text_bytes = 64 << 10;

bool send_text(int fd, const std::string& text) {
    return ::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

std::string receive_text(int fd) {
    std::string text(most_text_bytes, '\0');
    text.resize(static_cast<size_t>(std::max<ssize_t>(0, ::recv(fd, text.data(), text.size(), 0))));
    return text;
}

// No descriptor of home has the number of one of the acceptor's.
void keep_below(int fd_base) {
    rlimit limit{};
    if (fd_base == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    auto most = static_cast<rlim_t>(fd_base);
    limit = {std::min(limit.rlim_cur, most), std::min(limit.rlim_max, most)};
    setrlimit(RLIMIT_NOFILE, &limit);
}

// The monitor keeps nothing of the program's but stderr, for its own last words, and these.
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

// Where threads on two nodes wake each other, and this host allows it.
std::unique_ptr<CallWatch> watch_for(const ExecOptions& options) {
    if (!options.bpf || !SplitPolicy(options.rules).mixed()) return nullptr;
    auto watch = CallWatch::load();
    if (watch) return std::move(*watch);
    spdlog::info("calls that wake futexes are stopped: {}", watch.error().message());
    return nullptr;
}

// None: the user does not want it.
Result<std::unique_ptr<DirectoryRecord>> record_for(const ExecOptions& options,
                                                    const SessionOutputs& outputs) {
    if (outputs.record_file().empty()) return nullptr;
    const uint64_t seed = SplitPolicy(options.rules).chaos_seed();
    return DirectoryRecord::create(outputs.record_file(), seed);
}

// What was found out about the acceptors before there is a session.
struct Preparation {
    Launch packet;
    std::vector<FdRange> fds;                       // by acceptor
    std::vector<std::vector<std::string>> lacking;  // CPU features
    std::vector<std::vector<std::string>> standby;  // profiles
};

Result<std::vector<EstablishedAcceptor>> connect_all(const ExecOptions& options,
                                                     SessionOutputs& outputs,
                                                     const StartLocalAcceptor& start_local,
                                                     pid_t program) {
    std::vector<EstablishedAcceptor> connected;
    const std::string session_id = new_session_id();
    for (const AcceptorAddress& acceptor : options.acceptors) {
        outputs.user().doing(fmt::format("connecting to {}", text_of(acceptor)));
        auto node = static_cast<NodeId>(connected.size() + 1);
        GPR_TRY(auto one, connect_acceptor(options, node, session_id, outputs.log_of_acceptor(),
                                           start_local, program));
        connected.push_back(std::move(one));
    }
    outputs.user().doing(
        fmt::format("starting {} at {}", options.program, text_of(options.acceptors.front())));
    return connected;
}

Result<Preparation> prepare(const ExecOptions& options,
                            const std::vector<EstablishedAcceptor>& connected, pid_t program) {
    Preparation launch;
    const char* now = getenv("GLIBC_TUNABLES");
    const std::string before = now ? now : "";
    std::string tunables = before;
    for (const EstablishedAcceptor& acceptor : connected) {
        auto lacking = lacking_at(acceptor.peer.host, describe_this_host());
        auto met = meet_lacks(options, tunables, lacking);
        if (!met) {
            return fail(fmt::format("acceptor {} {}", acceptor.peer_name, met.error().what));
        }
        tunables = *met;
        launch.lacking.push_back(std::move(lacking));
        launch.standby.push_back(acceptor.peer.standby);
    }
    if (tunables.size() >= sizeof launch.packet.tunables) {
        return fail("GLIBC_TUNABLES is too long");
    }
    if (tunables != before) {
        tunables.copy(launch.packet.tunables, sizeof launch.packet.tunables - 1);
    }
    GPR_TRY(launch.fds, choose_fd_ranges(options, connected, program));
    for (const FdRange& fds : launch.fds) {
        if (launch.packet.fd_base == 0) launch.packet.fd_base = static_cast<int>(fds.base);
    }
    return launch;
}

std::vector<Device> devices_of(const std::vector<EstablishedAcceptor>& connected) {
    std::vector<Device> devices;
    for (const EstablishedAcceptor& acceptor : connected) {
        devices.insert(devices.end(), acceptor.peer.devices.begin(), acceptor.peer.devices.end());
    }
    return devices;
}

SessionFacts facts_of(const std::vector<EstablishedAcceptor>& connected) {
    SessionFacts facts;
    for (const Device& device : devices_of(connected)) facts.devices.push_back(device.id);
    return facts;
}

std::string variables_for(const ExecOptions& options,
                          const std::vector<EstablishedAcceptor>& connected) {
    auto variables = device_variables(devices_of(connected));
    variables.insert(variables.end(), options.variables.begin(), options.variables.end());
    return variables_text(variables);
}

int run_monitor(const ExecOptions& options, const StartLocalAcceptor& start_local, pid_t program,
                int channel) {
    auto give_up = [&](const std::string& why) {
        complain(why);
        send_word(channel, Word::failed);
        return exit_gpr_failed;
    };
    auto outputs = SessionOutputs::open(options);
    if (!outputs) return give_up(outputs.error().message());
    std::vector<int> kept = outputs->descriptors();
    kept.push_back(channel);
    detach_from_program(std::move(kept));
    if (auto begun = outputs->begin(); !begun) return give_up(begun.error().message());
    auto lifted = lift_own_limits(least_files_of_monitor);
    if (!lifted) return give_up(lifted.error().message());
    auto connected = connect_all(options, *outputs, start_local, program);
    if (!connected) return give_up(connected.error().message());
    auto launch = prepare(options, *connected, program);
    if (!launch) return give_up(launch.error().what);
    if (chdir("/") != 0) return give_up("cannot change to /");
    auto loop = Loop::create();
    if (!loop) return give_up(loop.error().message());
    auto waits = Waits::create(**loop);
    if (!waits) return give_up(waits.error().message());
    auto code = Mailbox::create_code_memfd();
    if (!code) return give_up(code.error().message());
    auto metrics = SessionControl::metrics_at(options.metrics);
    if (!metrics) return give_up(metrics.error().message());
    auto record = record_for(options, *outputs);
    if (!record) return give_up(record.error().message());
    const std::string variables = variables_for(options, *connected);
    const SessionFacts facts = facts_of(*connected);
    std::vector<std::unique_ptr<Link>> links;
    home::Acceptors acceptors;
    for (size_t i = 0; i < connected->size(); i++) {
        links.push_back(make_link(**loop, std::move((*connected)[i])));
        const FdRange& fds = launch->fds[i];
        acceptors.add(*links.back(), fds.base, fds.last).masked = launch->lacking[i];
    }
    HomeSession session(**loop, **waits, std::move(acceptors), options, *outputs, std::move(*code));
    std::vector<std::unique_ptr<Progress>> progress;
    for (size_t i = 0; i < links.size(); i++) {
        progress.push_back(std::make_unique<Progress>(**loop, *links[i], outputs->user(),
                                                      [&] { return session.waits_for_pages(); }));
        session.keep_standby(static_cast<NodeId>(i + 1), launch->standby[i]);
    }
    if (*record) session.record(**record);
    auto watch = watch_for(options);
    launch->packet.calls_watched = watch != nullptr;
    if (!send_word(channel, Word::ready) || !send_packet(channel, launch->packet) ||
        !send_text(channel, variables)) {
        return exit_gpr_failed;
    }
    if (watch) session.watch_futexes(std::move(watch));
    Word word;
    int listener_number = -1;
    if (!receive_word(channel, word, listener_number)) return exit_gpr_failed;
    Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, program, 0)));
    Fd listener(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), listener_number, 0)));
    if (!listener) return give_up("cannot take over the seccomp listener");
    auto seized = trace::seize(program, trace::home_options);
    if (!seized) return give_up(seized.error().message());
    session.start(program, std::move(listener));
    const SessionControl control(**loop, session, program, facts, std::move(*metrics));
    send_word(channel, Word::go);
    close(channel);
    (*loop)->run();
    return session.failure().empty() ? 0 : exit_gpr_failed;
}

Result<int> install_filter(const std::vector<SplitRule>& rules, const Launch& launch) {
    const SplitPolicy policy(rules);
    FilterOptions filter_options;
    filter_options.remote_calls = remote_calls_of(rules);
    if (launch.fd_base != 0) {
        filter_options.files_elsewhere = true;
        filter_options.fd_base = static_cast<uint32_t>(launch.fd_base);
    }
    filter_options.conditions = {policy.mixed(), launch.calls_watched, policy.has_functions()};
    filter_options.notify_everything = policy.chaos_seed() != 0;
    // Never freed: that might be a call (brk), and nobody listens yet.
    static std::vector<sock_filter> filter;
    filter = home_filter(filter_options);
    sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    auto install = [&] {
        return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                        SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
    };
    int listener = install();
    if (listener < 0 && errno == EACCES) {
        // Not an administrator: set-user-id programs then run without their privileges.
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        listener = install();
    }
    // A process has one listener for its calls, and inherits it.
    if (listener < 0 && errno == EBUSY) {
        return fail(
            "gpr cannot run inside gpr, or where something else supervises all system calls");
    }
    if (listener < 0) return fail(errno, "cannot install the seccomp filter");
    return listener;
}

// The file itself has been found before.
std::string_view advice_on(int exec_error) {
    switch (exec_error) {
        case ENOENT: return "; its interpreter is missing, and 'gpr explain' names it";
        case ENOEXEC: return "; without a '#!' line it is for a shell: gpr exec ... -- sh FILE";
        default: return "";
    }
}

}  // namespace

int run_exec(const ExecOptions& options, const StartLocalAcceptor& start_local) {
    int channel[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) != 0) {
        complain("cannot create a socket pair");
        return exit_gpr_failed;
    }
    // A program may be started with its standard descriptors closed, and these are not for us.
    for (int& end : channel) {
        if (end > STDERR_FILENO) continue;
        int moved = fcntl(end, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        close(end);
        end = moved;
    }
    pid_t program = getpid();
    int reaps = 0;
    prctl(PR_GET_CHILD_SUBREAPER, &reaps);
    if (reaps) prctl(PR_SET_CHILD_SUBREAPER, 0);
    pid_t middle = fork();
    if (middle == 0) {
        // A grandchild, so that the program has no child that it does not know.
        pid_t monitor = fork();
        if (monitor != 0) _exit(monitor < 0 ? 1 : 0);
        close(channel[0]);
        _exit(run_monitor(options, start_local, program, channel[1]));
    }
    close(channel[1]);
    int status = 0;
    waitpid(middle, &status, 0);
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
    if (!monitor_says(Word::ready) || !receive_packet(channel[0], launch)) return exit_gpr_failed;
    set_variables(receive_text(channel[0]));
    keep_below(launch.fd_base);
    if (launch.tunables[0] != 0) setenv("GLIBC_TUNABLES", launch.tunables, 1);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);

    std::vector<char*> arguments;
    arguments.push_back(const_cast<char*>(options.program.c_str()));
    for (const std::string& a : options.args) arguments.push_back(const_cast<char*>(a.c_str()));
    arguments.push_back(nullptr);
    auto listener = install_filter(options.rules, launch);
    if (!listener) {
        complain(listener.error().message());
        return exit_gpr_failed;
    }
    send_word(channel[0], Word::ready, *listener);
    if (!monitor_says(Word::go)) return exit_gpr_failed;
    if (reaps) prctl(PR_SET_CHILD_SUBREAPER, 1);  // the monitor notes that
    execve(options.program_path.c_str(), arguments.data(), environ);
    int error = errno;
    complain(fmt::format("cannot execute {}: {}{}", options.program_path, std::strerror(error),
                         advice_on(error)));
    _exit(error == ENOENT ? exit_not_found : exit_cannot_execute);
}

}  // namespace gpr
