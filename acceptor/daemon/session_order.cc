#include "acceptor/daemon/session_order.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "acceptor/box/cgroup.h"
#include "acceptor/box/exports.h"
#include "acceptor/box/worker_process.h"
#include "acceptor/daemon/daemon_channel.h"
#include "acceptor/devices/device_choice.h"
#include "acceptor/devices/inventory.h"
#include "monitor/node/process_names.h"
#include "transport/host.h"
#include "transport/tls_stream.h"

namespace gpr {

// Not in the unnamed namespace, because the JSON library must find them.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PortRange, first, count)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NetworkAllowance, sockets, raw, only_own_abstract_sockets, host,
                                   connector, ports, ports_each)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SessionLimits, memory_bytes, milli_cpus, tasks,
                                   device_memory_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(UserIds, first, count)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProcessLimits, tasks, files, worker_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(AcceptorOptions, token_file, log_file, log_level, exports,
                                   network, pretend_without, drain_s, limits, user_ids,
                                   cache_folder, cache_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SessionOrder, options, peer, plain, quiet, features,
                                   process_limits, cgroup_parent, cgroup_mount, token)

namespace {

// An order without a text: the connection is a socket over which the session comes.
constexpr int connection_number = 3, channel_number = 4, order_number = 5, tally_number = 6;
constexpr const char* this_program = "/proc/self/exe";
constexpr const char* name_of_order = "gpr-session-order";

// Distinguishes the daemon's order from whatever else a shell may have open at that number.
bool is_order(int fd) {
    const std::string link = fmt::format("/proc/self/fd/{}", fd);
    std::array<char, 64> target{};
    if (readlink(link.c_str(), target.data(), target.size() - 1) < 0) return false;
    return std::string_view(target.data()).starts_with(fmt::format("/memfd:{}", name_of_order));
}

Result<Fd> empty_order() {
    Fd file(memfd_create(name_of_order, MFD_CLOEXEC));
    if (!file) return fail(errno, "write a session's order");
    return file;
}

Result<Fd> write_order(const SessionOrder& order) {
    GPR_TRY(Fd file, empty_order());
    std::string text = nlohmann::json(order).dump();
    const auto written = write(file.get(), text.data(), text.size());
    const bool whole = written == static_cast<ssize_t>(text.size());
    OPENSSL_cleanse(text.data(), text.size());
    if (!whole) return fail(errno, "write a session's order");
    return file;
}

// Through high numbers, so that none overwrites one that has yet to be moved.
bool arrange(const OrderedSession& session, const Fd& order) {
    constexpr int high = 64;
    const std::array wanted{std::pair{session.connection.get(), connection_number},
                            std::pair{session.channel.get(), channel_number},
                            std::pair{order.get(), order_number},
                            std::pair{session.tally.get(), tally_number}};
    std::array<int, wanted.size()> moved{};
    for (size_t i = 0; i < wanted.size(); ++i) {
        const int from = wanted[i].first;
        moved[i] = from < 0 ? -1 : fcntl(from, F_DUPFD_CLOEXEC, high);
        if (from >= 0 && moved[i] < 0) return false;
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
        close(wanted[i].second);
        if (moved[i] >= 0 && dup2(moved[i], wanted[i].second) < 0) return false;
    }
    return close_range(tally_number + 1, ~0U, 0) == 0;
}

int execute_with(const OrderedSession& session, const Result<Fd>& order, const std::string& who) {
    if (!order || !arrange(session, *order)) {
        spdlog::error("{}: no descriptors for a session", who);
        return worker_not_executed;
    }
    execl(this_program, "gpr", "serve-session", nullptr);
    spdlog::error("{}: cannot execute {}: {}", who, this_program, std::strerror(errno));
    return worker_not_executed;
}

// Connection, channel, order, and the tally if there is one.
constexpr size_t most_handed = 4;

struct HandedMessage {
    explicit HandedMessage(size_t descriptors) {
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        header.msg_control = control.data();
        header.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
    }
    HandedMessage(const HandedMessage&) = delete;
    HandedMessage& operator=(const HandedMessage&) = delete;

    void put(std::span<const int> fds) {
        cmsghdr* message = CMSG_FIRSTHDR(&header);
        message->cmsg_level = SOL_SOCKET;
        message->cmsg_type = SCM_RIGHTS;
        message->cmsg_len = CMSG_LEN(fds.size_bytes());
        std::memcpy(CMSG_DATA(message), fds.data(), fds.size_bytes());
    }
    // What has come.
    std::vector<int> take() {
        const cmsghdr* message = CMSG_FIRSTHDR(&header);
        if (!message || message->cmsg_type != SCM_RIGHTS) return {};
        std::vector<int> fds((message->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        std::memcpy(fds.data(), CMSG_DATA(message), fds.size() * sizeof(int));
        return fds;
    }

    char word = 0;
    iovec part{&word, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(most_handed * sizeof(int))> control{};
    msghdr header{};
};

// What any session needs is done before. Then its descriptors get the numbers that they would have
// had from the start.
FolderNames wait_for_session() {
    prctl(PR_SET_NAME, spare_process_name);
    TlsStream::prepare();
    static_cast<void>(describe_this_host());
    FolderNames folders;
    read_ahead(folders);
    const Fd socket(fcntl(connection_number, F_DUPFD_CLOEXEC, tally_number + 1));
    for (const int number : {connection_number, order_number}) close(number);
    HandedMessage message(most_handed);
    const ssize_t got =
        TEMP_FAILURE_RETRY(recvmsg(socket.get(), &message.header, MSG_CMSG_CLOEXEC));
    const std::vector<int> fds = got == 1 ? message.take() : std::vector<int>{};
    if (fds.size() < most_handed - 1) _exit(0);  // the acceptor ends
    constexpr std::array numbers{connection_number, channel_number, order_number, tally_number};
    std::vector<Fd> high;
    for (const int fd : fds) {
        high.emplace_back(fcntl(fd, F_DUPFD_CLOEXEC, 2 * tally_number));
        close(fd);
    }
    for (size_t i = 0; i < fds.size(); i++) dup2(high[i].get(), numbers.at(i));
    return folders;
}

// This session is the only one, so it need not share devices with others.
Result<Welcome> admit_alone(const Hello& hello) {
    Welcome welcome;
    if (hello.devices.empty()) return welcome;
    welcome.inventory = take_inventory({"", default_exports()});
    GPR_TRY(welcome.devices, choose_devices(welcome.inventory.devices, hello.devices));
    return welcome;
}

Result<TokenFile> tokens_of(const SessionOrder& order) {
    if (order.token.empty()) return TokenFile::load(order.options.token_file);
    GPR_TRY(auto token, parse_token(order.token));
    return TokenFile({std::move(token)});
}

Result<int> make_cgroup(std::optional<SessionCgroup>& cgroup, const SessionOrder& order) {
    if (order.cgroup_parent.empty()) return -1;
    const auto parent = CgroupParent::of_daemon(order.cgroup_parent, order.cgroup_mount);
    auto made = parent.create_session(order.options.limits);
    if (!made && order.options.limits.any()) return tl::make_unexpected(made.error());
    if (!made) {
        spdlog::warn("{}: no cgroup: {}", order.peer, made.error().message());
        return -1;
    }
    cgroup.emplace(std::move(*made));
    return cgroup->fd();
}

}  // namespace

int execute_session(OrderedSession session) {
    auto order = write_order(session.order);
    OPENSSL_cleanse(session.order.token.data(), session.order.token.size());
    return execute_with(session, order, session.order.peer);
}

int execute_spare(Fd socket) {
    return execute_with({std::move(socket), Fd(), {}, Fd()}, empty_order(), "a spare worker");
}

bool hand_over(const Fd& to, const OrderedSession& session) {
    const auto order = write_order(session.order);
    if (!order) return false;
    std::array<int, most_handed> fds{session.connection.get(), session.channel.get(), order->get(),
                                     session.tally.get()};
    const size_t count = session.tally ? fds.size() : fds.size() - 1;
    HandedMessage message(count);
    message.put(std::span(fds).first(count));
    return sendmsg(to.get(), &message.header, MSG_NOSIGNAL) == 1;
}

Result<OrderedSession> receive_session() {
    struct stat status {};
    const auto look = [&] { return is_order(order_number) && fstat(order_number, &status) == 0; };
    if (!look()) return fail("only an acceptor calls this; see 'gpr acceptor --help'");
    FolderNames folders;
    if (status.st_size == 0) {
        folders = wait_for_session();
        if (!look()) return fail("the session's order has not come");
    }
    const Fd order(order_number);
    std::string text(static_cast<size_t>(status.st_size), '\0');
    const auto got = pread(order.get(), text.data(), text.size(), 0);
    if (got != static_cast<ssize_t>(text.size())) return fail(errno, "read the session's order");
    OrderedSession session{Fd(connection_number), Fd(), {}, Fd(), std::move(folders)};
    if (fcntl(channel_number, F_GETFD) >= 0) session.channel = Fd(channel_number);
    if (fcntl(tally_number, F_GETFD) >= 0) session.tally = Fd(tally_number);
    for (const int fd : {connection_number, channel_number, tally_number}) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    try {
        session.order = nlohmann::json::parse(text).get<SessionOrder>();
    } catch (const nlohmann::json::exception& error) {
        return fail(fmt::format("the session's order makes no sense: {}", error.what()));
    }
    OPENSSL_cleanse(text.data(), text.size());
    return session;
}

int serve_ordered(OrderedSession session, const WorkerMain& worker) {
    SessionOrder& order = session.order;
    const bool alone = !order.token.empty();
    ServeOptions serve;
    serve.load_tokens = [&order] {
        auto tokens = tokens_of(order);
        OPENSSL_cleanse(order.token.data(), order.token.size());
        return tokens;
    };
    serve.peer = order.peer;
    serve.allow_plain = order.plain;
    serve.quiet = order.quiet;
    serve.features = order.features;
    serve.keeps_contents = !order.options.cache_folder.empty();
    serve.hidden_cpu_features = order.options.pretend_without;
    serve.exports = order.options.exports;
    serve.folders = std::move(session.folders);
    serve.network = order.options.network;
    serve.user_ids = order.options.user_ids;
    Result<> asked;
    serve.ask = [&](const Hello& hello) {
        if (!alone) asked = send_hello(session.channel.get(), hello);
    };
    serve.admit = [&](const Hello& hello) -> Result<Welcome> {
        if (alone) return admit_alone(hello);
        GPR_CHECK(asked);
        return receive_verdict(session.channel.get());
    };
    std::optional<SessionCgroup> cgroup;
    serve.limits = order.options.limits;
    serve.process_limits = order.process_limits;
    if (order.process_limits.worker_bytes != 0) limit_own_memory(order.process_limits.worker_bytes);
    serve.cgroup_fd = [&] { return make_cgroup(cgroup, order); };
    return serve_connection(std::move(session.connection), serve, worker);
}

}  // namespace gpr
