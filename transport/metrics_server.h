// Serves a text as /metrics over HTTP. For any event loop: one descriptor tells when to call
// serve().
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/result.h"
#include "transport/http_server.h"

namespace gpr {

class MetricsServer {
public:
    // A client asks; answer() may come at once, or later.
    using Asked = std::function<void(uint64_t id)>;

    // address: HOST:PORT or unix:/path, like that of an acceptor.
    static Result<MetricsServer> create(const std::string& address);

    void on_asked(Asked asked) { asked_ = std::move(asked); }
    // Readable when there is something to serve().
    [[nodiscard]] int fd() const { return http_.fd(); }
    void serve();
    void answer(uint64_t id, const std::string& text);
    // Some client is connected: expire() is wanted once a second.
    [[nodiscard]] bool is_busy() const { return http_.is_busy(); }
    void expire() { http_.expire(); }
    // Where it really listens.
    [[nodiscard]] std::string address() const { return http_.endpoint().text(); }
    // For a child of the serving process: closes what it has inherited. The parent goes on serving.
    void leave() { http_.leave(); }

private:
    explicit MetricsServer(HttpServer http) : http_(std::move(http)) {}
    void on_request(uint64_t id, const HttpRequest& request);

    HttpServer http_;
    Asked asked_;
};

}  // namespace gpr
