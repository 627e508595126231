#include "transport/metrics_server.h"

namespace gpr {

namespace {

constexpr size_t most_clients = 16;

}  // namespace

Result<MetricsServer> MetricsServer::create(const std::string& address) {
    GPR_TRY(HttpServer http, HttpServer::create(address, most_clients));
    return MetricsServer(std::move(http));
}

void MetricsServer::serve() {
    http_.serve([this](uint64_t id, const HttpRequest& request) { on_request(id, request); });
}

void MetricsServer::on_request(uint64_t id, const HttpRequest& request) {
    if (request.method != "GET" || request.path() != "/metrics" || !asked_) {
        return http_.answer(id,
                            {"404 Not Found", "text/plain", "There is only /metrics here.\n", ""});
    }
    asked_(id);
}

void MetricsServer::answer(uint64_t id, const std::string& text) {
    http_.answer(id, {"200 OK", "text/plain; version=0.0.4; charset=utf-8", text, ""});
}

}  // namespace gpr
