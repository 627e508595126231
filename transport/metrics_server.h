// Serves a text as /metrics over HTTP. It never blocks, and a client costs at most a descriptor for
// some seconds. For any event loop: one descriptor tells when to call serve().
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "transport/endpoint.h"

namespace gpr {

class MetricsServer {
public:
    // A client asks; answer() may come at once, or later.
    using Asked = std::function<void(uint64_t id)>;

    // address: HOST:PORT or unix:/path, like that of an acceptor.
    static Result<MetricsServer> create(const std::string& address);

    void on_asked(Asked asked) { asked_ = std::move(asked); }
    // Readable when there is something to serve().
    [[nodiscard]] int fd() const { return events_.get(); }
    void serve();
    void answer(uint64_t id, const std::string& text);
    // Some client is connected: expire() is wanted once a second.
    [[nodiscard]] bool is_busy() const { return !clients_.empty() || is_paused_; }
    void expire();
    // Where it really listens.
    [[nodiscard]] std::string address() const;
    // For a child of the serving process: closes what it has inherited. The parent goes on serving.
    void leave();

private:
    struct Client {
        Fd fd;
        std::chrono::steady_clock::time_point until;
        std::string request, answer;
        size_t sent = 0;
        bool asked = false;
    };

    MetricsServer(Fd events, std::vector<Listener> listeners)
        : events_(std::move(events)), listeners_(std::move(listeners)) {}
    void accept(uint64_t listener);
    void pause(bool pauses);
    void read(uint64_t id);
    void write(uint64_t id);

    Fd events_;  // an epoll of the listeners and clients
    std::vector<Listener> listeners_;
    Asked asked_;
    std::map<uint64_t, Client> clients_;
    uint64_t last_id_ = 0;
    bool is_paused_ = false;  // no descriptor is left for new clients
    std::chrono::steady_clock::time_point paused_until_;
};

}  // namespace gpr
