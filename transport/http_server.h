// Answers requests over HTTP, one for each connection. It never blocks, and a client costs at most
// a descriptor for some seconds. For any event loop: one descriptor tells when to call serve().
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "transport/endpoint.h"

namespace gpr {

struct HttpRequest {
    std::string method, target;      // as they were sent; empty: it was no request
    std::vector<std::string> hosts;  // each Host header
    bool has_body = false;           // which nobody reads

    // head: all up to the empty line.
    static HttpRequest parse(std::string_view head);
    // The target without what follows '?', and the value of a name behind it; empty: there is none.
    [[nodiscard]] std::string_view path() const;
    [[nodiscard]] std::string_view parameter(std::string_view name) const;
};

struct HttpAnswer {
    std::string status;  // "200 OK"
    std::string type;
    std::string body;
    std::string headers{};  // more of them, each with its line's end
};

class HttpServer {
public:
    // A client asks; answer() may come at once, or later.
    using Asked = std::function<void(uint64_t id, const HttpRequest& request)>;

    // address: HOST:PORT or unix:/path, like that of an acceptor.
    static Result<HttpServer> create(const std::string& address, size_t most_clients);

    // Readable when there is something to serve().
    [[nodiscard]] int fd() const { return events_.get(); }
    void serve(const Asked& asked);
    void answer(uint64_t id, const HttpAnswer& answer);
    // Some client is connected: expire() is wanted once a second.
    [[nodiscard]] bool is_busy() const { return !clients_.empty() || is_paused_; }
    void expire();
    // Where it really listens.
    [[nodiscard]] const Endpoint& endpoint() const { return listeners_.front().endpoint(); }
    // For a child of the serving process: closes what it has inherited. The parent goes on serving.
    void leave();

private:
    struct Client {
        enum class State { asks, waits, is_answered, is_left };

        Fd fd;
        std::chrono::steady_clock::time_point until;
        State state = State::asks;
        std::string head, answer;
        bool without_body = false;  // of the answer
        bool has_body = false;      // of the request
        size_t sent = 0;
    };

    HttpServer(Fd events, std::vector<Listener> listeners, size_t most_clients)
        : events_(std::move(events)),
          listeners_(std::move(listeners)),
          most_clients_(most_clients) {}
    void accept(uint64_t listener);
    void pause(bool pauses);
    void read(uint64_t id, const Asked& asked);
    void read_rest(uint64_t id);
    void write(uint64_t id);
    void leave_client(uint64_t id);

    Fd events_;  // an epoll of the listeners and clients
    std::vector<Listener> listeners_;
    size_t most_clients_;
    std::map<uint64_t, Client> clients_;
    uint64_t last_id_ = 0;
    bool is_paused_ = false;  // no descriptor is left for new clients
    std::chrono::steady_clock::time_point paused_until_;
};

}  // namespace gpr
