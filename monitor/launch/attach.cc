#include "monitor/launch/attach.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/kernel_features.h"
#include "base/log.h"
#include "monitor/launch/attachable.h"
#include "monitor/launch/session_host.h"
#include "monitor/node/process_names.h"
#include "monitor/tracee/infection.h"
#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/remote_memory_raw.h"
#include "transport/loop.h"

namespace gpr {

namespace {

// How long to wait for the process to stop: a vfork, or an uninterruptible wait in the kernel, that
// does not end in this time usually takes much longer.
constexpr std::chrono::seconds patience{2};
// For a descendant, while others stand still already.
constexpr std::chrono::milliseconds less_patience{300};

using Tell = std::function<void(const std::string& line)>;

int refuse(const std::string& why) {
    std::fprintf(stderr, "gpr: %s\n", why.c_str());
    return exit_gpr_failed;
}

// Unlike under `gpr exec`, the program's C library has already chosen code for this CPU.
Result<> check_cpus(const std::vector<SessionHost::Peer>& peers) {
    for (const SessionHost::Peer& peer : peers) {
        if (peer.lacking.empty()) continue;
        return fail(fmt::format(
            "acceptor {} cannot run what was begun here: it lacks {}; choose an acceptor with a "
            "like CPU, or begin the program under 'gpr exec --mask-cpu'",
            peer.name, fmt::join(peer.lacking, ", ")));
    }
    return {};
}

// Takes a process that runs, and its descendants.
class Takeover {
public:
    // family: of the process, beside its descendants.
    Takeover(int fd_base, std::vector<pid_t> family)
        : fd_base_(fd_base), family_(std::move(family)) {}

    // The process itself comes first. It is left unchanged if it cannot be taken. A descendant that
    // cannot runs on as it is, and `tell` says why.
    Result<std::vector<Infection::Taken>> take(pid_t root, const Tell& tell) {
        auto stopped = stop(root, tell);
        if (!stopped) return tl::make_unexpected(stopped.error());
        std::vector<Infection::Taken> all;
        for (Infection& each : *stopped) {
            const pid_t pid = each.pid();
            auto taken = take_stopped(each);
            if (taken) {
                all.push_back(std::move(*taken));
            } else if (pid == root) {
                return tl::make_unexpected(taken.error());
            } else {
                tell_of(pid, taken.error(), tell);
            }
        }
        return all;
    }

private:
    static void tell_of(pid_t pid, const Error& why, const Tell& tell) {
        if (why.code == ESRCH || is_being_killed(pid)) return;
        tell(fmt::format("a descendant goes on as it is: {}", why.message()));
    }

    // Until none is left that has begun meanwhile: who is stopped makes no children.
    Result<std::vector<Infection>> stop(pid_t root, const Tell& tell) const {
        std::vector<Infection> stopped;
        std::set<pid_t> seen;
        std::vector<pid_t> next{root};
        next.insert(next.end(), family_.begin(), family_.end());
        for (; !next.empty(); next = descendants_of(root)) {
            std::erase_if(next, [&](pid_t pid) { return !seen.insert(pid).second; });
            if (next.empty()) break;
            for (const pid_t pid : next) {
                auto possible = pid == root ? Result<>{} : check_attachable(pid);
                auto one = possible ? Infection::begin(pid, pid == root ? patience : less_patience)
                                    : tl::make_unexpected(possible.error());
                if (one) {
                    stopped.push_back(std::move(*one));
                } else if (pid == root) {
                    return explain_refusal(pid, one.error());
                } else {
                    tell_of(pid, one.error(), tell);
                }
            }
        }
        return stopped;
    }

    Result<Infection::Taken> take_stopped(Infection& infection) {
        const pid_t pid = infection.pid();
        GPR_TRY(auto memory, infection.read_memory());
        GPR_CHECK(check_memory(pid, memory.mappings));
        GPR_TRY(const auto timers, infection.take_cpu_timers());
        if (!timers.empty() || has_created_cpu_timer(pid)) return has_cpu_timer(pid);
        const FilesLimit files = FilesLimit::of(pid, static_cast<rlim_t>(fd_base_));
        GPR_CHECK(files.check(pid));
        GPR_CHECK(infection.take_thread_state());
        GPR_CHECK(infection.unlock(memory));
        GPR_TRY(Infection::Taken taken, infection.hand_over(trace::home_options));
        taken.memory = std::move(memory);
        files.lower(pid);
        taken.files_limit = files;
        return taken;
    }

    const int fd_base_;
    const std::vector<pid_t> family_;
};

constexpr std::array signals_to_detach{SIGINT, SIGTERM, SIGHUP};

void block_signals_to_detach(sigset_t& set) {
    sigemptyset(&set);
    for (int signal : signals_to_detach) sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

// Ctrl-C, and other signals that would kill this command, detach: the process continues.
Watch detach_on_signals(SessionHost& host, SessionOutputs& outputs) {
    sigset_t set;
    block_signals_to_detach(set);
    auto wishes = std::make_shared<Fd>(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    return host.loop().watch(wishes->get(), POLLIN, [&host, &outputs, wishes](uint32_t) {
        signalfd_siginfo wish{};
        while (read(wishes->get(), &wish, sizeof wish) > 0) {
        }
        host.session().detach([&outputs](const Result<>& done) {
            if (!done) outputs.tell("cannot detach: " + done.error().message());
        });
    });
}

// The processes that are attached, and where they go on.
struct Place {
    std::optional<SessionHost::Move> next;  // nullopt: natively
    std::vector<pid_t> family;
};

// Until all of it is detached. Returns the exit status.
int attach_to(const ExecOptions& options, pid_t pid, const StartLocalAcceptor& start_local,
              SessionOutputs& session_outputs, Place& place,
              const std::function<void(int messages)>& is_attached) {
    SessionOutputs* outputs = &session_outputs;
    auto host = SessionHost::prepare(options, *outputs, start_local, pid, command_name(pid));
    if (!host) return refuse(host.error().message());
    if (auto alike = check_cpus((*host)->peers()); !alike) {
        return refuse("cannot attach: " + alike.error().message());
    }
    if (auto made = (*host)->make_session(); !made) return refuse(made.error().message());
    if (!(*host)->loop().can_watch_words()) {
        return refuse("cannot attach: this kernel's io_uring cannot wait for futexes; " +
                      std::string(cure_newer_kernel));
    }
    sigset_t set;
    block_signals_to_detach(set);
    HomeSession& session = (*host)->session();
    session.report_by_stops(home_filter_for(options, (*host)->fd_base(), (*host)->watches_calls()));
    Takeover takeover((*host)->fd_base(), std::move(place.family));
    auto taken = takeover.take(pid, [&](const std::string& line) { outputs->tell(line); });
    if (!taken) return refuse("cannot attach: " + taken.error().message());
    session.adopt(std::move(*taken), [&] { is_attached(outputs->user().fd()); });
    const Watch wish = detach_on_signals(**host, *outputs);
    const int status = (*host)->run();
    place = {(*host)->next(), session.detached()};
    return status;
}

}  // namespace

int run_attach(const ExecOptions& options, pid_t pid, const StartLocalAcceptor& start_local,
               const std::function<void(int messages)>& is_attached) {
    if (auto possible = check_attachable(pid); !possible) {
        return refuse("cannot attach: " + possible.error().message());
    }
    auto outputs = SessionOutputs::open(options);
    if (!outputs) return refuse(outputs.error().message());
    prctl(PR_SET_NAME, monitor_process_name);
    if (auto begun = outputs->begin(); !begun) return refuse(begun.error().message());
    Place place;
    int status = attach_to(options, pid, start_local, *outputs, place, is_attached);
    for (ExecOptions moved = options; status == 0 && place.next;) {
        const std::string name = moved.acceptors.at(place.next->node - 1u).name;
        AcceptorAddress& other = moved.acceptors.at(place.next->node - 1u) = place.next->to;
        if (moved.acceptors.size() > 1) other.name = name;  // rules may say it
        if (!place.next->token_file.empty()) moved.token_file = place.next->token_file;
        if (kill(pid, 0) != 0) break;  // it has ended
        status = attach_to(moved, pid, start_local, *outputs, place, [](int) {});
    }
    return status;
}

}  // namespace gpr
