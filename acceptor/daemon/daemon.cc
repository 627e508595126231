#include "acceptor/daemon/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <map>
#include <set>

#include "acceptor/box/cgroup.h"
#include "acceptor/box/exports.h"
#include "acceptor/box/network_connector.h"
#include "acceptor/box/privileges.h"
#include "acceptor/box/sandbox.h"
#include "acceptor/box/worker_process.h"
#include "acceptor/daemon/daemon_channel.h"
#include "acceptor/daemon/device_desk.h"
#include "acceptor/daemon/ending_signals.h"
#include "acceptor/daemon/host_look.h"
#include "acceptor/daemon/service_manager.h"
#include "acceptor/daemon/session_book.h"
#include "acceptor/daemon/spare_worker.h"
#include "base/log.h"
#include "base/own_limits.h"
#include "monitor/rules/exec_options.h"
#include "transport/metrics_server.h"

namespace gpr {
namespace {

using SteadyClock = std::chrono::steady_clock;

// When to accept again after the host has run out of descriptors or processes.
constexpr auto exhaustion_pause = std::chrono::milliseconds(200);
constexpr int tick_ms = 100;
constexpr const char* weaker_without_user =
    "they can read what of the exported files only that user may read, and share its keyrings and "
    "what the kernel counts by user";

std::vector<std::string> all_exports(const AcceptorOptions& options) {
    auto exports = default_exports();
    exports.insert(exports.end(), options.exports.begin(), options.exports.end());
    return exports;
}

class Daemon {
public:
    Daemon(const AcceptorOptions& options, const SessionStart& start, const DaemonLimits& limits,
           bool keeps_spare)
        : options_(options),
          start_(start),
          limits_(limits),
          spare_(keeps_spare),
          admission_(limits.admission),
          allowance_(limits.stranger_log),
          session_limits_(options.limits),
          desk_({"", all_exports(options)}) {}

    Result<> start() {
        if (!has_capability(CAP_SYS_ADMIN)) {
            return fail(
                "an acceptor is started by root: it makes namespaces for each session; "
                "run it with sudo, or as the service gpr-acceptor");
        }
        GPR_CHECK(TokenFile::load(options_.token_file));
        if (gives_own_networks()) {
            GPR_TRY(connector_, find_network_connector());
        }
        for (const auto& address : options_.listen) {
            GPR_TRY(const auto endpoint, parse_endpoint(address, options_.plain_allowed));
            GPR_TRY(auto listeners, Listener::listen(endpoint));
            for (auto& listener : listeners) listeners_.push_back(std::move(listener));
        }
        if (!options_.metrics.empty()) {
            GPR_TRY(metrics_, MetricsServer::create(options_.metrics));
            metrics_->on_asked([this](uint64_t id) {
                metrics_->answer(id, book_.metrics({limits_.admission.sessions, desk_.devices()}));
            });
            spdlog::info("counts are at http://{}/metrics", metrics_->address());
        }
        GPR_TRY(signals_, catch_ending_signals());
        GPR_CHECK(lift_own_limits(least_files_of_acceptor));
        prctl(PR_SET_CHILD_SUBREAPER, 1);  // gets the orphans of killed workers
        GPR_CHECK(look_at_users());
        GPR_CHECK(make_cgroups());
        features_ = present_features();
        GPR_CHECK(look_at_network());
        GPR_TRY(options_.cache_folder, usable_cache(options_));
        warn_of_missing_exports(options_.exports);
        for (const auto& listener : listeners_) {
            spdlog::info("listening on {}{}", listener.endpoint().text(),
                         listener.endpoint().plain ? " (not encrypted)" : "");
        }
        tell_service_manager("READY=1");
        return {};
    }

    // Returns in a forked worker, too: with the worker's exit status.
    int run() {
        while (!stopping_) {
            wait_for_events();
            if (in_worker_) return worker_status_;
        }
        tell_service_manager("STOPPING=1");
        listeners_.clear();
        if (options_.drain_s != 0) drain();
        stop();
        return 0;
    }

    [[nodiscard]] bool in_worker() const { return in_worker_; }

private:
    struct Child {
        std::string peer;
        SteadyClock::time_point since;
        Fd channel;  // carries the request of a peer that has proven a token, and our answer
        bool was_asked = false;
        bool is_session = false;
        bool is_told = true;  // it is in the log, as every peer that has proven a token
    };

    // If this process may not map user ids, sessions run less isolated.
    Result<> look_at_users() {
        if (options_.user_ids.none()) {
            options_.user_ids = {};
            spdlog::warn("sessions run as this host's user {} (--uid-range none): {}", getuid(),
                         weaker_without_user);
            return {};
        }
        GPR_CHECK(check_nobody_has(options_.user_ids));
        SandboxOptions trial;
        trial.user = options_.user_ids.first;
        const auto made = Sandbox::create(trial);
        if (made) return {};
        if (options_.user_ids_wanted) return tl::make_unexpected(made.error());
        options_.user_ids = {};
        spdlog::warn(
            "sessions run as this host's user {}, since they can have no user namespace "
            "({}): {}",
            getuid(), made.error().message(), weaker_without_user);
        return {};
    }

    [[nodiscard]] bool gives_own_networks() const {
        return options_.network.sockets && !options_.network.is_of_host();
    }

    Result<> look_at_network() const {
        if (gives_own_networks()) return try_network_connector(connector_, options_.user_ids);
        if (options_.network.sockets) warn_of_abstract_sockets();
        return {};
    }

    // Limits that the administrator asked for are required. Default limits are set if possible;
    // otherwise that is logged.
    Result<> make_cgroups() {
        const bool counts_users = !options_.user_ids.none();
        if (options_.limits_tasks) session_limits_.tasks = default_tasks;
        process_limits_ = process_limits(session_limits_, host_memory());
        SessionLimits asked = options_.limits;
        if (counts_users) asked.tasks = 0;  // counted by the kernel per user, and by the worker
        session_limits_ = asked;
        if (options_.limits_memory) {
            SessionLimits more = asked;
            more.memory_bytes = default_memory(host_memory());
            auto parent = CgroupParent::create(more);
            if (parent) {
                session_limits_ = more;
                cgroups_.emplace(std::move(*parent));
                return {};
            }
            spdlog::warn("the memory of sessions is not limited: {}", parent.error().message());
        }
        auto parent = CgroupParent::create(asked);
        if (parent) {
            cgroups_.emplace(std::move(*parent));
            return {};
        }
        if (asked.any()) return tl::make_unexpected(parent.error());
        spdlog::info("sessions get no cgroup: {}", parent.error().message());
        return {};
    }

    void wait_for_events() {
        std::vector<pollfd> polled{{signals_.get(), POLLIN, 0}};
        const bool accepting = SteadyClock::now() >= accept_again_at_;
        for (const auto& listener : listeners_) {
            polled.push_back({accepting ? listener.fd() : -1, POLLIN, 0});
        }
        std::vector<pid_t> asking;
        for (const auto& [pid, child] : children_) {
            if (!child.channel || child.was_asked) continue;
            polled.push_back({child.channel.get(), POLLIN, 0});
            asking.push_back(pid);
        }
        polled.push_back({desk_.fd(), POLLIN, 0});
        polled.push_back({metrics_ ? metrics_->fd() : -1, POLLIN, 0});
        const bool ticking = drains_ || !accepting || admission_.strangers() > 0 ||
                             !dead_.empty() || desk_.is_busy() || allowance_.keeps_back() ||
                             (metrics_ && metrics_->is_busy());
        const int most_ms = spare_.wait_ms(ticking ? tick_ms : -1);
        if (poll(polled.data(), polled.size(), most_ms) == 0) spare_.look();
        const size_t first_child = 1 + listeners_.size();
        for (size_t i = 0; i < asking.size(); ++i) {
            if (polled[first_child + i].revents != 0) hear(asking[i]);
        }
        desk_.look();
        if (metrics_ && polled.back().revents != 0) metrics_->serve();
        if (metrics_ && metrics_->is_busy()) metrics_->expire();
        if (polled[0].revents != 0) take_signals();
        for (size_t i = 0; i < listeners_.size() && !in_worker_; ++i) {
            if (polled[1 + i].revents != 0) accept_from(i);
        }
        if (in_worker_) return;
        while (const auto late = admission_.overdue(SteadyClock::now())) {
            end_stranger(*late, "took too long to prove a token");
        }
        if (const auto more = allowance_.over(SteadyClock::now())) {
            spdlog::warn("{} more connections of strangers, without a line each", *more);
        }
        remove_cgroups();
    }

    void hear(pid_t pid) {
        auto& child = children_.at(pid);
        const auto hello = receive_hello(child.channel.get());
        if (!hello) {
            child.channel.reset();
            return;
        }
        child.was_asked = child.is_told = true;
        // A peer that only asks what there is has no session, and must be as quick as a stranger.
        if (!hello->want_inventory && !hello->only_looks) {
            child.is_session = admission_.prove(pid);
            if (!child.is_session) return answer(pid, full());
        }
        desk_.ask(pid, *hello, [this, pid, asked = *hello](Result<Welcome> verdict) {
            if (verdict && asked.only_looks && asked.want_sessions)
                verdict->sessions = book_.sessions();
            if (verdict && children_.at(pid).is_session) {
                book_.is_session(pid, asked, verdict->devices);
            }
            answer(pid, verdict);
        });
    }

    void answer(pid_t pid, const Result<Welcome>& verdict) {
        auto& child = children_.at(pid);
        if (!verdict) book_.note_refused();
        if (const auto sent = send_verdict(child.channel.get(), verdict); !sent) {
            spdlog::warn("{}: worker {} not answered: {}", child.peer, pid, sent.error().message());
        }
        child.channel.reset();
    }

    [[nodiscard]] Failure full() const {
        return fail(
            fmt::format("is full ({} of {} sessions); try again later, or start it with "
                        "a higher --max-sessions",
                        admission_.sessions(), limits_.admission.sessions));
    }

    void take_signals() {
        signalfd_siginfo info{};
        while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
            if (info.ssi_signo == SIGCHLD) continue;
            spdlog::info("ending on signal {}", info.ssi_signo);
            stopping_ = true;
        }
        reap();
    }

    void reap() {
        int status = 0;
        while (true) {
            const pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);
            if (pid <= 0) return;
            const auto found = children_.find(pid);
            if (spare_.note_end(pid) || found == children_.end()) continue;  // or a worker's orphan
            if (found->second.is_told) {
                const Child& child = found->second;
                log_end(
                    {pid, child.peer, child.is_session, SteadyClock::now() - child.since, status});
            } else {
                allowance_.keep_back();
            }
            children_.erase(found);
            desk_.forget(pid);
            admission_.left(pid);
            book_.left(pid);
            if (cgroups_) dead_.insert(pid);
        }
    }

    void accept_from(size_t listener) {
        auto accepted = listeners_[listener].accept();
        if (!accepted) {
            const int error = accepted.error().code;
            if (error == EAGAIN || error == ECONNABORTED || error == EINTR) return;
            spdlog::warn("{}", accepted.error().message());
            accept_again_at_ = SteadyClock::now() + exhaustion_pause;
            return;
        }
        const auto now = SteadyClock::now();
        const auto verdict = admission_.judge(accepted->peer, now);
        if (!verdict.refusal.empty()) {
            if (!allowance_.take(now)) return allowance_.keep_back();
            spdlog::warn("{}: turned away: {}", accepted->peer, verdict.refusal);
            return;
        }
        if (verdict.evict) end_stranger(*verdict.evict, "had to make room for others");
        fork_worker(std::move(accepted->fd), accepted->peer, listeners_[listener].endpoint().plain);
    }

    void end_stranger(pid_t pid, const char* why) {
        const Child& child = children_.at(pid);
        if (child.is_told) spdlog::warn("{}: {}", child.peer, why);
        kill(pid, SIGKILL);
        admission_.left(pid);  // at once: it is reaped later
    }

    void fork_worker(Fd connection, const std::string& peer, bool plain) {
        std::array<int, 2> channel{};
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel.data()) == -1) {
            return pause_accepting(peer);
        }
        Fd ours(channel[0]);
        Fd theirs(channel[1]);
        auto tally = SharedTally::create();
        const pid_t daemon = getpid();
        const auto now = SteadyClock::now();
        const bool is_told = allowance_.take(now);
        OrderedSession session{std::move(connection), std::move(theirs),
                               order_for(peer, plain, is_told), Fd(tally ? dup(tally->fd()) : -1)};
        const auto spare = spare_.take(session);
        const pid_t pid = spare ? *spare : fork();
        if (pid == -1) return pause_accepting(peer);
        if (pid == 0) {
            become_worker_process(daemon);
            ours.reset();
            worker_status_ = start_session(std::move(session));
            return;
        }
        spdlog::debug("{}: connected, worker {}", peer, pid);
        children_[pid] = {peer, now, std::move(ours)};
        children_[pid].is_told = is_told;
        book_.came(pid, peer, tally ? std::optional(std::move(*tally)) : std::nullopt);
        admission_.came(pid, peer, now);
    }

    void pause_accepting(const std::string& peer) {
        spdlog::error("{}: turned away: {}", peer, std::strerror(errno));
        accept_again_at_ = SteadyClock::now() + exhaustion_pause;
    }

    [[nodiscard]] SessionOrder order_for(const std::string& peer, bool plain, bool is_told) const {
        SessionOrder order;
        order.options = options_;
        order.options.exports = all_exports(options_);
        order.options.limits = session_limits_;
        order.options.network.only_own_abstract_sockets = probe_leaving_abstract_sockets() == 0;
        order.options.network.connector = connector_;
        order.process_limits = process_limits_;
        order.peer = peer;
        order.plain = plain;
        order.quiet = !is_told;
        order.features = features_;
        if (cgroups_) {
            order.cgroup_parent = cgroups_->path();
            order.cgroup_mount = cgroups_->mount_point();
        }
        return order;
    }

    // Runs in the worker.
    int start_session(OrderedSession session) {
        in_worker_ = true;
        listeners_.clear();
        children_.clear();
        signals_.reset();
        if (metrics_) metrics_->leave();
        return start_(std::move(session));
    }

    void remove_cgroups() {
        std::erase_if(dead_, [this](pid_t worker) { return cgroups_->try_remove_session(worker); });
    }

    // Programs leave, if they can, until the time is over or we are told again to end.
    void drain() {
        const auto until = SteadyClock::now() + std::chrono::seconds(options_.drain_s);
        spdlog::info("{} sessions have {} s to leave", admission_.sessions(), options_.drain_s);
        for (const auto& [pid, child] : children_) kill(pid, SIGTERM);
        drains_ = true;
        stopping_ = false;
        while (!children_.empty() && !stopping_ && SteadyClock::now() < until) wait_for_events();
        if (const size_t left = admission_.sessions(); left != 0) {
            spdlog::warn("{} sessions have not left, and are ended", left);
        }
    }

    void stop() {
        spare_.dismiss();
        for (const auto& [pid, child] : children_) kill(pid, SIGTERM);
        const auto kill_at = SteadyClock::now() + limits_.stop_grace;
        bool killed = false;
        while (!children_.empty()) {
            pollfd ended{signals_.get(), POLLIN, 0};
            poll(&ended, 1, tick_ms);
            take_signals();
            if (killed || SteadyClock::now() < kill_at) continue;
            for (const auto& [pid, child] : children_) kill(pid, SIGKILL);
            killed = true;
        }
        wait_for_leftovers();
        spdlog::info("ended");
    }

    // Orphans of killed workers, which are still dying, and their cgroups.
    void wait_for_leftovers() {
        const auto give_up_at = SteadyClock::now() + limits_.stop_grace;
        while (SteadyClock::now() < give_up_at) {
            const pid_t pid = waitpid(-1, nullptr, WNOHANG | __WALL);
            if (pid > 0) continue;
            remove_cgroups();
            if (pid == -1 && dead_.empty()) return;
            poll(nullptr, 0, 2);
        }
    }

    AcceptorOptions options_;  // as they take effect on this host
    const SessionStart& start_;
    const DaemonLimits limits_;
    SpareWorker spare_;
    Admission admission_;
    LogAllowance allowance_;
    std::string connector_;         // program for sessions' own networks; empty: there are none
    SessionLimits session_limits_;  // set in their cgroups
    ProcessLimits process_limits_;
    DeviceDesk desk_;
    SessionBook book_;
    std::optional<MetricsServer> metrics_;  // empty if counts cannot be fetched
    std::vector<std::string> features_;
    std::optional<CgroupParent> cgroups_;
    std::vector<Listener> listeners_;
    Fd signals_;
    std::map<pid_t, Child> children_;
    std::set<pid_t> dead_;  // dead workers whose cgroups have yet to be removed
    SteadyClock::time_point accept_again_at_{};
    bool stopping_ = false;
    bool drains_ = false;
    bool in_worker_ = false;
    int worker_status_ = 0;
};

int cannot_start(const std::string& why) {
    fmt::print(stderr, "gpr: {}\n", why);
    return exit_gpr_failed;
}

int run_with(const AcceptorOptions& options, const SessionStart& start, const DaemonLimits& limits,
             bool keeps_spare) {
    if (const auto logging = start_logging(options.log_file, options.log_level); !logging) {
        return cannot_start(logging.error().message());
    }
    DaemonLimits effective = limits;
    effective.admission.sessions = options.max_sessions;
    Daemon daemon(options, start, effective, keeps_spare);
    if (const auto started = daemon.start(); !started) {
        return cannot_start(started.error().message());
    }
    const int status = daemon.run();
    // A worker must not return to the daemon's caller.
    if (daemon.in_worker()) _exit(status);
    return status;
}

}  // namespace

int run_acceptor_daemon(const AcceptorOptions& options) {
    return run_with(options, execute_session, {}, true);
}

int run_acceptor_daemon(const AcceptorOptions& options, const SessionStart& start,
                        const DaemonLimits& limits) {
    return run_with(options, start, limits, false);
}

}  // namespace gpr
