#include "monitor/launch/session_host.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <future>

#include "base/log.h"
#include "base/own_limits.h"
#include "bpf/call_watch.h"
#include "bpf/name_watch.h"
#include "monitor/control/session_control.h"
#include "monitor/control/trace_connection.h"
#include "monitor/home/directory_record.h"
#include "monitor/launch/greeting.h"
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

// A watch on futex calls, if there is to be one and this host allows it.
std::unique_ptr<CallWatch> watch_for(const ExecOptions& options) {
    if (!watches_futexes(options)) return nullptr;
    auto watch = CallWatch::load();
    if (watch) return std::move(*watch);
    spdlog::info("calls that wake futexes are stopped: {}", watch.error().message());
    return nullptr;
}

// A watch on names, if there is to be one and this host allows it.
std::unique_ptr<NameWatch> name_watch_for(const ExecOptions& options) {
    if (!watches_names(options)) return nullptr;
    auto watch = NameWatch::load();
    if (watch) return std::move(*watch);
    spdlog::info("calls that name files are stopped: {}", watch.error().message());
    return nullptr;
}

}  // namespace

SessionHost::SessionHost(ExecOptions options, SessionOutputs& outputs)
    : options_(std::move(options)), outputs_(outputs) {}

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
    id_ = new_session_id();
    for (const AcceptorAddress& acceptor : options_.acceptors) {
        outputs_.user().doing(fmt::format("connecting to {}", text_of(acceptor)));
        spdlog::info("connecting to {}", text_of(acceptor));
        auto node = static_cast<NodeId>(connected_.size() + 1);
        // A local acceptor is a child of the thread that starts it.
        const bool meanwhile = !loop_ && !acceptor.is_local();
        GPR_TRY(auto one,
                meanwhile ? greet_and_prepare(node, start_local) : greet(node, start_local));
        tell_of(one);
        connected_.push_back(std::move(one));
    }
    outputs_.user().doing(
        fmt::format("starting {} at {}", name, text_of(options_.acceptors.front())));
    return {};
}

Result<EstablishedAcceptor> SessionHost::greet(NodeId node, const StartLocalAcceptor& start_local) {
    const Hello hello = hello_of(options_, node, id_, program_);
    own_host_ = hello.host;
    return greet_acceptor_of(options_, node, outputs_.log_of_acceptor(), start_local,
                             [&hello] { return hello; });
}

// The acceptor is greeted by a thread, while this one prepares.
Result<EstablishedAcceptor> SessionHost::greet_and_prepare(NodeId node,
                                                           const StartLocalAcceptor& start_local) {
    std::promise<Hello> promise;
    auto promised = promise.get_future();
    const auto greet = [&] {
        return greet_acceptor_of(options_, node, {}, start_local,
                                 [&promised] { return promised.get(); });
    };
    std::future<Result<EstablishedAcceptor>> greeting;
    {
        const WithoutSignals beginning;
        // Deferred where there can be no more threads.
        greeting = std::async(std::launch::async | std::launch::deferred, greet);
    }
    Hello hello = hello_of(options_, node, id_, program_);
    own_host_ = hello.host;
    promise.set_value(std::move(hello));
    const auto prepared = prepare_alone();
    auto greeted = greeting.get();
    if (greeted) GPR_CHECK(prepared);
    return greeted;
}

// What does not depend on the acceptors.
Result<> SessionHost::prepare_alone() {
    GPR_TRY(loop_, Loop::create());
    GPR_TRY(waits_, Waits::create(*loop_));
    GPR_TRY(stub_code_, Mailbox::create_code_memfd());
    call_watch_ = watch_for(options_);
    name_watch_ = name_watch_for(options_);
    return {};
}

Result<> SessionHost::compare(pid_t program) {
    GPR_TRY(const auto fds, choose_fd_ranges(options_, connected_, program));
    for (size_t i = 0; i < connected_.size(); i++) {
        const EstablishedAcceptor& one = connected_[i];
        peers_.push_back({one.peer_name, one.peer, fds[i], lacking_at(one.peer.host, own_host_)});
    }
    return {};
}

int SessionHost::fd_base() const {
    for (const Peer& peer : peers_) {
        if (peer.fds.base != 0) return static_cast<int>(peer.fds.base);
    }
    return 0;
}

Result<> SessionHost::await_gdb(const GdbWanted& wanted) {
    if (!wanted.is_wanted()) return {};
    GPR_TRY(gdb_, GdbEntry::create(wanted.address, wanted.socket));
    return {};
}

Result<> SessionHost::make_session() {
    if (!loop_) GPR_CHECK(prepare_alone());
    if (!outputs_.record_file().empty()) {
        const uint64_t seed = SplitPolicy(options_.rules, options_.attaches).chaos_seed();
        GPR_TRY(record_, DirectoryRecord::create(outputs_.record_file(), seed));
    }
    home::Acceptors acceptors;
    for (size_t i = 0; i < connected_.size(); i++) {
        links_.push_back(make_link(*loop_, std::move(connected_[i])));
        const Peer& peer = peers_[i];
        home::RemoteNode& node = acceptors.add(*links_.back(), peer.fds.base, peer.fds.last);
        node.masked = peer.lacking;
        node.keeps_contents = peer.welcome.keeps_contents;
    }
    session_ = std::make_unique<HomeSession>(*loop_, *waits_, std::move(acceptors), options_,
                                             outputs_, std::move(stub_code_));
    for (size_t i = 0; i < links_.size(); i++) {
        progress_.push_back(progress_of(*links_[i]));
        session_->keep_standby(static_cast<NodeId>(i + 1), peers_[i].welcome.standby);
    }
    if (record_) session_->record(*record_);
    watches_calls_ = call_watch_ != nullptr;
    if (fd_base() == 0) name_watch_.reset();  // no acceptor has files
    watches_names_ = name_watch_ != nullptr;
    session_->watch(std::move(call_watch_), std::move(name_watch_));
    return {};
}

std::unique_ptr<Progress> SessionHost::progress_of(Link& link) {
    return std::make_unique<Progress>(*loop_, link, outputs_.user(),
                                      [this] { return session_->waits_for_pages(); });
}

Result<NodeId> SessionHost::node_to_leave(const Move& move) const {
    std::string names;
    std::optional<NodeId> found;
    for (size_t i = 0; i < options_.acceptors.size(); i++) {
        const AcceptorAddress& one = options_.acceptors[i];
        names += fmt::format("{}{} at {}", names.empty() ? "" : ", ", one.name, one.address);
        const bool is_meant =
            move.from.empty() || move.from == one.name || move.from == one.address;
        if (is_meant && !found) found = static_cast<NodeId>(i + 1);
        if (one.address == move.to.address && options_.acceptors.size() > 1) {
            return fail(fmt::format("the session has acceptor {} already", text_of(one)));
        }
    }
    if (options_.acceptors.size() > 1 && move.from.empty()) {
        return fail(
            fmt::format("the session has several acceptors ({}); say which of them it is "
                        "to leave, with '--from NAME'",
                        names));
    }
    if (!found) {
        return fail(fmt::format("the session has no acceptor {}; it has {}", move.from, names));
    }
    return *found;
}

Result<> SessionHost::can_move(const EstablishedAcceptor& to, NodeId node) const {
    const Peer& now = peers_.at(node - 1u);
    for (const std::string& feature : lacking_at(to.peer.host, describe_this_host())) {
        if (std::ranges::find(now.lacking, feature) != now.lacking.end()) continue;
        return fail(
            fmt::format("{} lacks {}, which the program may use already", to.peer_name, feature));
    }
    const uint64_t files = to.peer.host.limits.open_files_hard;
    if (now.fds.base != 0 && files < now.fds.base + least_fds_of_acceptor) {
        return fail(
            fmt::format("{} allows {} open files, and its descriptors in this session "
                        "begin at {}; raise its limit (ulimit -n)",
                        to.peer_name, files, now.fds.base));
    }
    return {};
}

Task<Result<>> SessionHost::move(Move move) {
    if (moves_) co_return fail("the session moves already");
    auto leaves = node_to_leave(move);
    if (!leaves) co_return tl::make_unexpected(leaves.error());
    move.node = *leaves;
    if (options_.attaches) co_return co_await leave_for(std::move(move));
    moves_ = true;
    auto connected = co_await greet(move);
    Result<> possible =
        connected ? can_move(*connected, move.node) : tl::make_unexpected(connected.error());
    if (possible) {
        const auto began = Clock::now();
        auto away = co_await session_->begin_move();
        if (away) {
            take_over(std::move(*connected), move);
            session_->end_move(*away);
            const std::chrono::duration<double, std::milli> took = Clock::now() - began;
            spdlog::info("{} processes move to {}: home within {:.1f} ms", away->size(),
                         links_.at(move.node - 1u)->peer_name(), took.count());
        } else {
            possible = tl::make_unexpected(away.error());
        }
    }
    moves_ = false;
    co_return possible;
}

Task<Result<EstablishedAcceptor>> SessionHost::greet(const Move& to) {
    ExecOptions wanted = options_;
    wanted.acceptors.at(to.node - 1u) = to.to;
    if (!to.token_file.empty()) wanted.token_file = to.token_file;
    Greeting greeting(*loop_, std::move(wanted), to.node, id_, program_);
    auto connected = co_await greeting.outcome();
    co_return connected;
}

// What was attached is detached, and attached again: nothing of a session is left in it meanwhile.
Task<Result<>> SessionHost::leave_for(Move to) {
    moves_ = true;
    const auto connected = co_await greet(to);
    Result<> possible =
        connected ? can_move(*connected, to.node) : tl::make_unexpected(connected.error());
    if (possible) {
        next_ = std::move(to);
        constexpr std::chrono::milliseconds until_told{20};  // for who has asked, over this loop
        loop_->after(until_told, [this] {
            session_->detach([this](const Result<>& done) {
                if (done) return;
                next_.reset();
                moves_ = false;
                outputs_.tell("cannot move: " + done.error().message());
            });
        });
    } else {
        moves_ = false;
    }
    co_return possible;
}

// Nothing of the session is at the acceptor that it has.
void SessionHost::take_over(EstablishedAcceptor connected, const Move& move) {
    tell_of(connected);
    const size_t place = move.node - 1u;
    peers_.at(place).name = connected.peer_name;
    peers_.at(place).welcome = connected.peer;
    AcceptorAddress& named = options_.acceptors.at(place);
    named.address = move.to.address;
    if (options_.acceptors.size() == 1) named.name = move.to.name;  // else rules may name it
    if (!move.token_file.empty()) options_.token_file = move.token_file;
    progress_.at(place).reset();
    std::unique_ptr<Link>& link = links_.at(place);
    link->close("the program goes on at another acceptor");
    former_links_.push_back(std::move(link));
    link = make_link(*loop_, std::move(connected));
    session_->replace_acceptor(move.node, *link, peers_.at(place).welcome.keeps_contents);
    session_->keep_standby(move.node, peers_.at(place).welcome.standby);
    progress_.at(place) = progress_of(*link);
}

Result<> SessionHost::trace_to(Fd reader) {
    gpr_trace_order order{};
    if (recv(reader.get(), &order, sizeof order, MSG_DONTWAIT) != sizeof order) {
        return fail(errno, "what to trace is not told");
    }
    GPR_TRY(trace_, TraceConnection::begin(*loop_, session_->events(), order));
    trace_->take(std::move(reader), [this] { trace_.reset(); });
    return {};
}

void SessionHost::begin_control() {
    SessionFacts facts;
    for (const Peer& peer : peers_) {
        for (const Device& device : peer.welcome.devices) facts.devices.push_back(device.id);
    }
    control_ = std::make_unique<SessionControl>(
        *loop_, *session_, program_, facts, std::exchange(metrics_, {}),
        [this](SessionControl::MoveOrder to) {
            return move({{std::move(to.name), std::move(to.address)},
                         std::move(to.from),
                         std::move(to.token_file)});
        });
}

int SessionHost::run() {
    if (!control_) begin_control();
    if (gdb_) {
        gdb_->begin(session_->state(), program_);
        if (!gdb_->address().empty()) {
            outputs_.tell(fmt::format("{} waits for gdb; type there: target remote {}",
                                      options_.program, gdb_->address()));
        }
    }
    loop_->run();
    control_.reset();
    trace_.reset();
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
