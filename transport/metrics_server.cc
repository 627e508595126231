#include "transport/metrics_server.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>

namespace gpr {

namespace {

constexpr std::chrono::seconds patience{5};
// How long no client is let in when no descriptor is left.
constexpr std::chrono::seconds exhaustion_pause{1};
constexpr size_t most_clients = 16, most_request_bytes = 8192;
constexpr uint64_t first_client = 1 << 16;  // below: numbers of listeners

bool watch(int epoll, int fd, uint32_t events, uint64_t id, int how = EPOLL_CTL_ADD) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    return epoll_ctl(epoll, how, fd, &event) == 0;
}

std::string response(const char* status, const char* type, const std::string& body) {
    return fmt::format(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
        status, type, body.size(), body);
}

}  // namespace

Result<MetricsServer> MetricsServer::create(const std::string& address) {
    GPR_TRY(Endpoint endpoint, parse_endpoint(address, true));
    GPR_TRY(std::vector<Listener> listeners, Listener::listen(endpoint));
    Fd events(epoll_create1(EPOLL_CLOEXEC));
    if (!events) return fail(errno, "make an epoll for metrics");
    for (size_t i = 0; i < listeners.size(); i++) {
        if (!watch(events.get(), listeners[i].fd(), EPOLLIN, i)) {
            return fail(errno, "watch the metrics' address " + address);
        }
    }
    return MetricsServer(std::move(events), std::move(listeners));
}

std::string MetricsServer::address() const { return listeners_.front().endpoint().text(); }

void MetricsServer::leave() {
    clients_.clear();
    listeners_.clear();
    events_.reset();
}

void MetricsServer::serve() {
    std::array<epoll_event, 16> events{};
    const int count = epoll_wait(events_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; i++) {
        const uint64_t id = events[static_cast<size_t>(i)].data.u64;
        if (id < listeners_.size()) {
            accept(id);
        } else if (const auto found = clients_.find(id); found == clients_.end()) {
            continue;
        } else if (found->second.answer.empty()) {
            read(id);
        } else {
            write(id);
        }
    }
}

// If there are too many clients, the oldest gives way to the new one.
void MetricsServer::accept(uint64_t listener) {
    auto accepted = listeners_[listener].accept();
    if (!accepted) {
        const int error = accepted.error().code;
        if (error == EMFILE || error == ENFILE || error == ENOMEM) pause(true);
        return;
    }
    if (clients_.size() >= most_clients) clients_.erase(clients_.begin());
    const uint64_t id = first_client + ++last_id_;
    Client& client = clients_[id];
    client.fd = std::move(accepted->fd);
    client.until = std::chrono::steady_clock::now() + patience;
    if (!watch(events_.get(), client.fd.get(), EPOLLIN, id)) clients_.erase(id);
}

void MetricsServer::pause(bool pauses) {
    is_paused_ = pauses;
    paused_until_ = std::chrono::steady_clock::now() + exhaustion_pause;
    for (size_t i = 0; i < listeners_.size(); i++) {
        watch(events_.get(), listeners_[i].fd(), pauses ? 0U : EPOLLIN, i, EPOLL_CTL_MOD);
    }
}

void MetricsServer::read(uint64_t id) {
    Client& client = clients_.at(id);
    std::array<char, most_request_bytes> bytes{};
    const ssize_t got = recv(client.fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        clients_.erase(id);
        return;
    }
    client.request.append(bytes.data(), static_cast<size_t>(got));
    const bool is_whole = client.request.find("\r\n\r\n") != std::string::npos;
    if (!is_whole && client.request.size() < most_request_bytes) return;
    if (!is_whole || client.asked) {
        clients_.erase(id);
        return;
    }
    const std::string line = client.request.substr(0, client.request.find("\r\n"));
    const bool good = line.starts_with("GET /metrics ") || line.starts_with("GET /metrics?");
    if (!good || !asked_) {
        client.answer = response("404 Not Found", "text/plain", "There is only /metrics here.\n");
        return write(id);
    }
    client.asked = true;
    watch(events_.get(), client.fd.get(), 0, id, EPOLL_CTL_MOD);
    asked_(id);
}

void MetricsServer::answer(uint64_t id, const std::string& text) {
    const auto found = clients_.find(id);
    if (found == clients_.end()) return;
    found->second.answer = response("200 OK", "text/plain; version=0.0.4; charset=utf-8", text);
    found->second.until = std::chrono::steady_clock::now() + patience;
    write(id);
}

void MetricsServer::write(uint64_t id) {
    Client& client = clients_.at(id);
    const ssize_t sent = send(client.fd.get(), client.answer.data() + client.sent,
                              client.answer.size() - client.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) client.sent += static_cast<size_t>(sent);
    const bool goes_on = sent > 0 || errno == EAGAIN || errno == EINTR;
    if (client.sent == client.answer.size() || !goes_on) {
        clients_.erase(id);
    } else {
        watch(events_.get(), client.fd.get(), EPOLLOUT, id, EPOLL_CTL_MOD);
    }
}

void MetricsServer::expire() {
    const auto now = std::chrono::steady_clock::now();
    if (is_paused_ && now >= paused_until_) pause(false);
    std::erase_if(clients_, [&](const auto& each) { return now > each.second.until; });
}

}  // namespace gpr
