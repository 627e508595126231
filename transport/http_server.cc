#include "transport/http_server.h"

#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

namespace gpr {

namespace {

constexpr std::chrono::seconds patience{5};
// How long no client is let in when no descriptor is left.
constexpr std::chrono::seconds exhaustion_pause{1};
constexpr size_t most_request_bytes = 8192;
constexpr uint64_t first_client = 1 << 16;  // below: numbers of listeners
constexpr std::string_view end_of_line = "\r\n", end_of_head = "\r\n\r\n";

bool watch(int epoll, int fd, uint32_t events, uint64_t id, int how = EPOLL_CTL_ADD) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    return epoll_ctl(epoll, how, fd, &event) == 0;
}

// What is before the separator; `text` becomes what is behind it.
std::string_view cut(std::string_view& text, std::string_view separator) {
    const size_t at = std::min(text.find(separator), text.size());
    const std::string_view part = text.substr(0, at);
    text.remove_prefix(std::min(at + separator.size(), text.size()));
    return part;
}

std::string_view without_blanks(std::string_view text) {
    const size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool is_called(std::string_view header, std::string_view name) {
    return header.size() == name.size() &&
           strncasecmp(header.data(), name.data(), name.size()) == 0;
}

}  // namespace

HttpRequest HttpRequest::parse(std::string_view head) {
    HttpRequest request;
    std::string_view line = cut(head, end_of_line);
    request.method = cut(line, " ");
    request.target = cut(line, " ");
    if (!line.starts_with("HTTP/1.")) return {};
    while (!head.empty()) {
        std::string_view value = cut(head, end_of_line);
        const std::string_view name = cut(value, ":");
        if (is_called(name, "Host")) request.hosts.emplace_back(without_blanks(value));
        request.has_body |=
            is_called(name, "Content-Length") || is_called(name, "Transfer-Encoding");
    }
    return request;
}

std::string_view HttpRequest::path() const {
    return std::string_view(target).substr(0, target.find('?'));
}

std::string_view HttpRequest::parameter(std::string_view name) const {
    std::string_view rest = target;
    cut(rest, "?");
    while (!rest.empty()) {
        std::string_view value = cut(rest, "&");
        if (cut(value, "=") == name) return value;
    }
    return {};
}

Result<HttpServer> HttpServer::create(const std::string& address, size_t most_clients) {
    GPR_TRY(Endpoint endpoint, parse_endpoint(address, true));
    GPR_TRY(std::vector<Listener> listeners, Listener::listen(endpoint));
    Fd events(epoll_create1(EPOLL_CLOEXEC));
    if (!events) return fail(errno, "make an epoll for " + address);
    for (size_t i = 0; i < listeners.size(); i++) {
        if (!watch(events.get(), listeners[i].fd(), EPOLLIN, i)) {
            return fail(errno, "watch the address " + address);
        }
    }
    return HttpServer(std::move(events), std::move(listeners), most_clients);
}

void HttpServer::leave() {
    clients_.clear();
    listeners_.clear();
    events_.reset();
}

void HttpServer::serve(const Asked& asked) {
    std::array<epoll_event, 16> events{};
    const int count = epoll_wait(events_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; i++) {
        const uint64_t id = events[static_cast<size_t>(i)].data.u64;
        const auto found = clients_.find(id);
        if (id < listeners_.size()) {
            accept(id);
        } else if (found == clients_.end()) {
            continue;
        } else if (found->second.state == Client::State::asks) {
            read(id, asked);
        } else if (found->second.state == Client::State::is_answered) {
            write(id);
        } else {
            read_rest(id);
        }
    }
}

// If there are too many clients, the oldest gives way to the new one.
void HttpServer::accept(uint64_t listener) {
    auto accepted = listeners_[listener].accept();
    if (!accepted) {
        const int error = accepted.error().code;
        if (error == EMFILE || error == ENFILE || error == ENOMEM) pause(true);
        return;
    }
    if (clients_.size() >= most_clients_) clients_.erase(clients_.begin());
    const uint64_t id = first_client + ++last_id_;
    Client& client = clients_[id];
    client.fd = std::move(accepted->fd);
    client.until = std::chrono::steady_clock::now() + patience;
    if (!watch(events_.get(), client.fd.get(), EPOLLIN, id)) clients_.erase(id);
}

void HttpServer::pause(bool pauses) {
    is_paused_ = pauses;
    paused_until_ = std::chrono::steady_clock::now() + exhaustion_pause;
    for (size_t i = 0; i < listeners_.size(); i++) {
        watch(events_.get(), listeners_[i].fd(), pauses ? 0U : EPOLLIN, i, EPOLL_CTL_MOD);
    }
}

void HttpServer::read(uint64_t id, const Asked& asked) {
    Client& client = clients_.at(id);
    std::array<char, most_request_bytes> bytes{};
    const ssize_t got = recv(client.fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        clients_.erase(id);
        return;
    }
    client.head.append(bytes.data(), static_cast<size_t>(got));
    const size_t end = client.head.find(end_of_head);
    const bool is_whole = end != std::string::npos;
    if (!is_whole && client.head.size() < most_request_bytes) return;
    if (!is_whole) {
        clients_.erase(id);
        return;
    }
    const HttpRequest request = HttpRequest::parse(std::string_view(client.head).substr(0, end));
    client.state = Client::State::waits;
    client.without_body = request.method == "HEAD";
    client.has_body = request.has_body;
    watch(events_.get(), client.fd.get(), 0, id, EPOLL_CTL_MOD);
    asked(id, request);
}

void HttpServer::answer(uint64_t id, const HttpAnswer& answer) {
    const auto found = clients_.find(id);
    if (found == clients_.end() || found->second.state != Client::State::waits) return;
    Client& client = found->second;
    client.answer = fmt::format(
        "HTTP/1.1 {}\r\n{}Content-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        answer.status, answer.headers, answer.type, answer.body.size());
    if (!client.without_body) client.answer += answer.body;
    client.state = Client::State::is_answered;
    client.until = std::chrono::steady_clock::now() + patience;
    write(id);
}

void HttpServer::write(uint64_t id) {
    Client& client = clients_.at(id);
    const ssize_t sent = send(client.fd.get(), client.answer.data() + client.sent,
                              client.answer.size() - client.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) client.sent += static_cast<size_t>(sent);
    const bool goes_on = sent > 0 || errno == EAGAIN || errno == EINTR;
    if (!goes_on) {
        clients_.erase(id);
    } else if (client.sent == client.answer.size()) {
        leave_client(id);
    } else {
        watch(events_.get(), client.fd.get(), EPOLLOUT, id, EPOLL_CTL_MOD);
    }
}

// The kernel answers what arrives at a closed socket, or has not been read from it, with a reset,
// which would take the answer away from a client that has more to say.
void HttpServer::leave_client(uint64_t id) {
    Client& client = clients_.at(id);
    if (!client.has_body || shutdown(client.fd.get(), SHUT_WR) != 0) {
        clients_.erase(id);
        return;
    }
    client.state = Client::State::is_left;
    watch(events_.get(), client.fd.get(), EPOLLIN, id, EPOLL_CTL_MOD);
}

// Of a client that has been answered, or has gone while it waited.
void HttpServer::read_rest(uint64_t id) {
    const Client& client = clients_.at(id);
    std::array<char, most_request_bytes> bytes{};
    const ssize_t got = recv(client.fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    const bool goes_on = got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
    if (!goes_on) clients_.erase(id);
}

void HttpServer::expire() {
    const auto now = std::chrono::steady_clock::now();
    if (is_paused_ && now >= paused_until_) pause(false);
    std::erase_if(clients_, [&](const auto& each) { return now > each.second.until; });
}

}  // namespace gpr
