#include "monitor/control/control_server.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/log.h"

namespace gpr {

namespace {

constexpr size_t most_request_bytes = 4096;
constexpr size_t most_connections = 16;
constexpr int backlog = 16;
// How long a request may take to arrive, and an answer to be read.
constexpr std::chrono::seconds patience{5};
// How long the session may take to find an answer. ControlClient::ask() gives up earlier, debug()
// later.
constexpr std::chrono::seconds most_answer_time{15};
// How long no client is accepted after the descriptors have run out.
constexpr std::chrono::seconds exhaustion_pause{1};

// The client's user; nullopt if that user may not ask.
std::optional<uid_t> who_may_ask(int connection) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
    if (peer.uid != 0 && peer.uid != geteuid()) return std::nullopt;
    return peer.uid;
}

// Removes sockets that nobody listens on, of sessions that were killed.
void remove_stale(const ControlFolder& folder) {
    for (const std::string& name : folder.names()) {
        const Fd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        const sockaddr_un address = folder.address(name);
        const auto* to = reinterpret_cast<const sockaddr*>(&address);
        const bool refused = connect(probe.get(), to, sizeof address) != 0 && errno == ECONNREFUSED;
        if (probe && refused) folder.remove(name);
    }
}

}  // namespace

struct ControlServer::Connection {
    Fd fd;
    uid_t by = 0;
    std::string request;
    bool asked = false;  // its request is complete
    Answer answer;
    size_t sent = 0;  // bytes of the answer
    Loop::TimerId deadline = 0;
    Watch watch;
};

Result<std::unique_ptr<ControlServer>> ControlServer::create(Loop& loop, ControlFolder folder,
                                                             pid_t pid, Answering answer) {
    remove_stale(folder);
    std::unique_ptr<ControlServer> server(
        new ControlServer(loop, std::move(folder), std::move(answer)));
    GPR_CHECK(server->listen(pid));
    server->watch();
    return server;
}

ControlServer::ControlServer(Loop& loop, ControlFolder folder, Answering answer)
    : loop_(loop), folder_(std::move(folder)), answer_(std::move(answer)) {}

// The socket gets its final name only once it listens, so one with such a name that refuses
// connections is stale.
Result<> ControlServer::listen(pid_t pid) {
    const std::string name = ControlFolder::new_name(pid);
    const std::string unready = "." + name;
    listener_ = Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const sockaddr_un address = folder_.address(unready);
    if (!listener_ ||
        bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return fail(errno, fmt::format("cannot make a socket in {}", folder_.path()));
    }
    name_ = unready;
    if (::listen(listener_.get(), backlog) != 0) {
        return fail(errno, fmt::format("cannot listen in {}", folder_.path()));
    }
    GPR_CHECK(folder_.rename(unready, name));
    name_ = name;
    return {};
}

ControlServer::~ControlServer() {
    if (!name_.empty()) folder_.remove(name_);
    if (pause_ != 0) loop_.cancel(pause_);
    while (!connections_.empty()) drop(connections_.begin()->first);
}

void ControlServer::watch() {
    watch_ = loop_.watch(listener_.get(), POLLIN, [this](uint32_t) { accept(); });
}

// Accepts one at a time, so that the session's own events get their turn.
void ControlServer::accept() {
    Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) {
        const bool passes = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
        if (passes) return;
        spdlog::warn("nobody can ask this session for a second: {}", std::strerror(errno));
        watch_.reset();
        pause_ = loop_.after(exhaustion_pause, [this] {
            pause_ = 0;
            watch();
        });
        return;
    }
    const auto by = who_may_ask(fd.get());
    if (!by || !make_room()) return;
    const uint64_t id = ++last_id_;
    auto& connection = connections_[id] = std::make_unique<Connection>();
    connection->fd = std::move(fd);
    connection->by = *by;
    connection->watch =
        loop_.watch(connection->fd.get(), POLLIN, [this, id](uint32_t) { read(id); });
    set_deadline(id, patience);
}

// A connection that has not sent its request yet makes room for a new one.
bool ControlServer::make_room() {
    if (connections_.size() < most_connections) return true;
    const auto silent = std::find_if(connections_.begin(), connections_.end(),
                                     [](const auto& each) { return !each.second->asked; });
    if (silent == connections_.end()) return false;
    drop(silent->first);
    return true;
}

void ControlServer::set_deadline(uint64_t id, std::chrono::seconds patience) {
    Connection& connection = *connections_.at(id);
    if (connection.deadline != 0) loop_.cancel(connection.deadline);
    connection.deadline = loop_.after(patience, [this, id] {
        connections_.at(id)->deadline = 0;
        drop(id);
    });
}

void ControlServer::drop(uint64_t id) {
    auto node = connections_.extract(id);
    if (node.empty()) return;
    if (node.mapped()->deadline != 0) loop_.cancel(node.mapped()->deadline);
    node.mapped()->watch.reset();
}

void ControlServer::read(uint64_t id) {
    Connection& connection = *connections_.at(id);
    std::array<char, most_request_bytes> bytes{};
    const ssize_t got = recv(connection.fd.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return drop(id);
    connection.request.append(bytes.data(), static_cast<size_t>(got));
    const size_t end = connection.request.find('\n');
    if (end == std::string::npos && connection.request.size() < most_request_bytes) return;
    if (end == std::string::npos || end > most_request_bytes) return drop(id);
    connection.asked = true;
    connection.watch.reset();  // nothing more is read
    set_deadline(id, most_answer_time);
    spawn(give_answer(this, id, connection.request.substr(0, end)));
}

Task<void> ControlServer::give_answer(ControlServer* server, uint64_t id, std::string request) {
    const uid_t by = server->connections_.at(id)->by;
    Task<Answer> answering = server->answer_(std::move(request), by);
    Answer answer = co_await answering;
    auto found = server->connections_.find(id);
    if (found == server->connections_.end()) co_return;
    found->second->answer = std::move(answer);
    server->set_deadline(id, patience);
    server->write(id);
}

void ControlServer::write(uint64_t id) {
    Connection& connection = *connections_.at(id);
    const std::string& text = connection.answer.text;
    while (connection.sent < text.size()) {
        const ssize_t sent = send(connection.fd.get(), text.data() + connection.sent,
                                  text.size() - connection.sent, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == EAGAIN) {
            connection.watch =
                loop_.watch(connection.fd.get(), POLLOUT, [this, id](uint32_t) { write(id); });
            return;
        }
        if (sent < 0) break;
        connection.sent += static_cast<size_t>(sent);
    }
    finish(id);
}

void ControlServer::finish(uint64_t id) {
    Connection& connection = *connections_.at(id);
    const bool complete = connection.sent == connection.answer.text.size();
    auto takes_over = complete ? std::move(connection.answer.takes_over) : nullptr;
    Fd fd = std::move(connection.fd);
    drop(id);
    if (takes_over) takes_over(std::move(fd));
}

}  // namespace gpr
