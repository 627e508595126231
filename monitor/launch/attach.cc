#include "monitor/launch/attach.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/log.h"
#include "monitor/launch/attachable.h"
#include "monitor/launch/resident.h"
#include "monitor/launch/session_host.h"
#include "monitor/node/process_names.h"
#include "monitor/tracee/infection.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/remote_memory_raw.h"
#include "transport/loop.h"

namespace gpr {

namespace {

// How long to wait for the process to stop: a vfork, or an uninterruptible wait in the kernel, that
// does not end in this time usually takes much longer.
constexpr std::chrono::seconds patience{2};

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

// Lowers the process's limit of open files, so that it gets no descriptor number of an acceptor.
class DescriptorsBelow {
public:
    Result<> begin(pid_t pid, int fd_base) {
        if (fd_base == 0 || prlimit(pid, RLIMIT_NOFILE, nullptr, &before_) != 0) return {};
        std::error_code gone;
        const std::string folder = fmt::format("/proc/{}/fd", pid);
        for (const auto& entry : std::filesystem::directory_iterator(folder, gone)) {
            if (std::atoi(entry.path().filename().c_str()) < fd_base) continue;
            return fail(fmt::format(
                "process {} has a descriptor {}, and from {} on they are the acceptor's; allow "
                "more open files there (ulimit -n)",
                pid, entry.path().filename().string(), fd_base));
        }
        now_ = before_;
        now_.rlim_cur = std::min(before_.rlim_cur, static_cast<rlim_t>(fd_base));
        if (prlimit(pid, RLIMIT_NOFILE, &now_, nullptr) == 0) pid_ = pid;
        return {};
    }
    // For a process that continues without us: restores the limit, unless the program has changed
    // it.
    void end() {
        rlimit its{};
        if (pid_ == 0 || prlimit(pid_, RLIMIT_NOFILE, nullptr, &its) != 0) return;
        if (its.rlim_cur == now_.rlim_cur) prlimit(pid_, RLIMIT_NOFILE, &before_, nullptr);
    }

private:
    pid_t pid_ = 0;
    rlimit before_{}, now_{};
};

Result<Infection::Taken> take(const ExecOptions& options, const SessionHost& host, pid_t pid,
                              DescriptorsBelow& descriptors) {
    auto infection = Infection::begin(pid, patience);
    if (!infection) return explain_refusal(pid, infection.error());
    GPR_TRY(auto memory, read_mapping_flags(pid));
    GPR_CHECK(check_memory(pid, memory));
    GPR_CHECK(check_timers(pid));
    GPR_TRY(const bool counts, infection->has_cpu_interval_timer());
    if (counts) return has_cpu_timer(pid);
    GPR_CHECK(descriptors.begin(pid, host.fd_base()));
    GPR_CHECK(infection->take_thread_state());
    std::vector<Range> locked;
    for (const MappingFlags& m : memory) {
        if (m.locked) locked.push_back(m.range);
    }
    GPR_CHECK(infection->unlock(std::move(locked)));
    const auto filter = home_filter_for(options, host.fd_base(), host.watches_calls());
    if (const auto resident = resident_of(pid)) {
        if (resident->filter != name_of_filter(filter)) {
            return fail(fmt::format(
                "process {} has the filter of an earlier session, which is not what these options "
                "need; attach it with the options of that session",
                pid));
        }
        GPR_TRY(Fd listener, relieve(*resident));
        infection->use_listener(std::move(listener));
    } else {
        GPR_CHECK(infection->install(filter));
    }
    GPR_TRY(Infection::Taken taken, infection->hand_over(trace::home_options));
    taken.memory = std::move(memory);
    return taken;
}

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

}  // namespace

int run_attach(const ExecOptions& options, pid_t pid, const StartLocalAcceptor& start_local) {
    if (auto possible = check_attachable(pid); !possible) {
        return refuse("cannot attach: " + possible.error().message());
    }
    auto outputs = SessionOutputs::open(options);
    if (!outputs) return refuse(outputs.error().message());
    prctl(PR_SET_NAME, monitor_process_name);
    if (auto begun = outputs->begin(); !begun) return refuse(begun.error().message());
    auto host = SessionHost::prepare(options, *outputs, start_local, pid, command_name(pid));
    if (!host) return refuse(host.error().message());
    if (auto alike = check_cpus((*host)->peers()); !alike) {
        return refuse("cannot attach: " + alike.error().message());
    }
    if (auto made = (*host)->make_session(); !made) return refuse(made.error().message());
    sigset_t set;
    block_signals_to_detach(set);
    DescriptorsBelow descriptors;
    auto taken = take(options, **host, pid, descriptors);
    if (!taken) {
        descriptors.end();
        return refuse("cannot attach: " + taken.error().message());
    }
    HomeSession& session = (*host)->session();
    session.adopt(std::move(*taken));
    const Watch wish = detach_on_signals(**host, *outputs);
    const int status = (*host)->run();
    if (std::ranges::find(session.detached(), pid) != session.detached().end()) descriptors.end();
    const auto filter = home_filter_for(options, (*host)->fd_base(), (*host)->watches_calls());
    auto left = leave_resident(session.listener(), name_of_filter(filter), session.detached());
    return left ? status : refuse(left.error().message());
}

}  // namespace gpr
