#include "monitor/launch/session_host.h"

#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/own_limits.h"
#include "bpf/call_watch.h"
#include "monitor/control/session_control.h"
#include "monitor/home/directory_record.h"
#include "monitor/launch/progress.h"
#include "monitor/node/host_match.h"
#include "monitor/rules/call_rules.h"
#include "monitor/rules/split_policy.h"
#include "monitor/tracee/mailbox.h"
#include "monitor/tracee/waits.h"
#include "syscall/filter.h"
#include "transport/handshake.h"

namespace gpr {

namespace {

// A watch on futex calls, if threads on two nodes may wake each other and this host allows it.
std::unique_ptr<CallWatch> watch_for(const ExecOptions& options) {
    if (!options.bpf || !SplitPolicy(options.rules, options.attaches).mixed()) return nullptr;
    auto watch = CallWatch::load();
    if (watch) return std::move(*watch);
    spdlog::info("calls that wake futexes are stopped: {}", watch.error().message());
    return nullptr;
}

}  // namespace

SessionHost::SessionHost(const ExecOptions& options, SessionOutputs& outputs)
    : options_(options), outputs_(outputs) {}

SessionHost::~SessionHost() = default;

Result<std::unique_ptr<SessionHost>> SessionHost::prepare(const ExecOptions& options,
                                                          SessionOutputs& outputs,
                                                          const StartLocalAcceptor& start_local,
                                                          pid_t program, const std::string& name) {
    std::unique_ptr<SessionHost> host(new SessionHost(options, outputs));
    host->program_ = program;
    GPR_TRY(host->metrics_, SessionControl::metrics_at(options.metrics));
    GPR_CHECK(lift_own_limits(least_files_of_monitor));
    GPR_CHECK(host->connect(start_local, name));
    GPR_CHECK(host->compare(program));
    if (chdir("/") != 0) return fail("cannot change to /");
    return host;
}

Result<> SessionHost::connect(const StartLocalAcceptor& start_local, const std::string& name) {
    const std::string session_id = new_session_id();
    for (const AcceptorAddress& acceptor : options_.acceptors) {
        outputs_.user().doing(fmt::format("connecting to {}", text_of(acceptor)));
        auto node = static_cast<NodeId>(connected_.size() + 1);
        GPR_TRY(auto one, connect_acceptor(options_, node, session_id, outputs_.log_of_acceptor(),
                                           start_local, program_));
        connected_.push_back(std::move(one));
    }
    outputs_.user().doing(
        fmt::format("starting {} at {}", name, text_of(options_.acceptors.front())));
    return {};
}

Result<> SessionHost::compare(pid_t program) {
    GPR_TRY(const auto fds, choose_fd_ranges(options_, connected_, program));
    for (size_t i = 0; i < connected_.size(); i++) {
        const EstablishedAcceptor& one = connected_[i];
        peers_.push_back(
            {one.peer_name, one.peer, fds[i], lacking_at(one.peer.host, describe_this_host())});
    }
    return {};
}

int SessionHost::fd_base() const {
    for (const Peer& peer : peers_) {
        if (peer.fds.base != 0) return static_cast<int>(peer.fds.base);
    }
    return 0;
}

Result<> SessionHost::make_session() {
    GPR_TRY(loop_, Loop::create());
    GPR_TRY(waits_, Waits::create(*loop_));
    GPR_TRY(auto code, Mailbox::create_code_memfd());
    if (!outputs_.record_file().empty()) {
        const uint64_t seed = SplitPolicy(options_.rules, options_.attaches).chaos_seed();
        GPR_TRY(record_, DirectoryRecord::create(outputs_.record_file(), seed));
    }
    home::Acceptors acceptors;
    for (size_t i = 0; i < connected_.size(); i++) {
        links_.push_back(make_link(*loop_, std::move(connected_[i])));
        const Peer& peer = peers_[i];
        acceptors.add(*links_.back(), peer.fds.base, peer.fds.last).masked = peer.lacking;
    }
    session_ = std::make_unique<HomeSession>(*loop_, *waits_, std::move(acceptors), options_,
                                             outputs_, std::move(code));
    for (size_t i = 0; i < links_.size(); i++) {
        progress_.push_back(std::make_unique<Progress>(
            *loop_, *links_[i], outputs_.user(), [this] { return session_->waits_for_pages(); }));
        session_->keep_standby(static_cast<NodeId>(i + 1), peers_[i].welcome.standby);
    }
    if (record_) session_->record(*record_);
    auto watch = watch_for(options_);
    watches_calls_ = watch != nullptr;
    if (watch) session_->watch_futexes(std::move(watch));
    return {};
}

int SessionHost::run() {
    SessionFacts facts;
    for (const Peer& peer : peers_) {
        for (const Device& device : peer.welcome.devices) facts.devices.push_back(device.id);
    }
    const SessionControl control(*loop_, *session_, program_, facts, std::exchange(metrics_, {}));
    loop_->run();
    return session_->failure().empty() ? 0 : exit_gpr_failed;
}

std::vector<sock_filter> home_filter_for(const ExecOptions& options, int fd_base,
                                         bool watches_calls) {
    const SplitPolicy policy(options.rules, options.attaches);
    FilterOptions filter;
    filter.remote_calls = remote_calls_of(options.rules);
    if (fd_base != 0) {
        filter.files_elsewhere = true;
        filter.fd_base = static_cast<uint32_t>(fd_base);
    }
    filter.conditions = {policy.mixed(), watches_calls, policy.has_functions()};
    filter.notify_everything = policy.chaos_seed() != 0;
    filter.notes_rseq = options.attaches;
    return home_filter(filter);
}

}  // namespace gpr
