#include "tools/view_server.h"

#include <httplib.h>
#include <openssl/crypto.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "tools/view_files.h"

namespace gpr {

namespace {

constexpr size_t token_bytes = 32;
constexpr size_t most_at_once = 32;
constexpr time_t patience_s = 3;  // with a client that says nothing, or does not read
constexpr size_t most_body_bytes = 1024;

// Nothing but what this server has, no other page around it, and no trace of the address.
const httplib::Headers safe_headers{
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"Cache-Control", "no-store"},
    {"Referrer-Policy", "no-referrer"},
    {"X-Content-Type-Options", "nosniff"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"}};

Result<std::string> new_token_text() {
    std::array<unsigned char, token_bytes> bytes{};
    if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
        return fail(errno, "the system gives no random numbers for a token");
    }
    std::string text;
    for (const unsigned char each : bytes) text += fmt::format("{:02x}", each);
    return text;
}

// Takes as long for any text of the right length.
bool is_same_secret(std::string_view one, std::string_view other) {
    return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

// "/TOKEN/FILE" in two.
std::pair<std::string_view, std::string_view> parts_of(std::string_view path) {
    if (path.starts_with('/')) path.remove_prefix(1);
    const size_t slash = std::min(path.find('/'), path.size());
    return {path.substr(0, slash), path.substr(slash)};
}

uint64_t number_of(const httplib::Request& request, const char* name) {
    const std::string text = request.get_param_value(name);
    uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

// So that no other socket, not even of this user, may take a share of what comes to the port.
void own_port_alone(socket_t fd) {
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

}  // namespace

Result<std::unique_ptr<ViewServer>> ViewServer::listen(ViewAddress address, ViewBoard& board) {
    GPR_TRY(std::string token, new_token_text());
    const std::string asked = address.text();
    std::unique_ptr<ViewServer> made(new ViewServer(std::move(address), std::move(token), board));
    httplib::Server& server = *made->server_;
    ViewAddress& at = made->address_;
    made->set_up();
    const int port = at.port == 0                            ? server.bind_to_any_port(at.host)
                     : server.bind_to_port(at.host, at.port) ? at.port
                                                             : -1;
    if (port <= 0) {
        return fail(
            fmt::format("cannot listen on {}: it is taken, or not this host's; choose "
                        "another port, or none for one that is free",
                        asked));
    }
    at.port = static_cast<uint16_t>(port);
    made->thread_ = std::thread([&server, &over = made->over_] {
        server.listen_after_bind();
        over = true;
    });
    return made;
}

ViewServer::ViewServer(ViewAddress address, std::string token, ViewBoard& board)
    : address_(std::move(address)),
      token_(std::move(token)),
      board_(board),
      server_(std::make_unique<httplib::Server>()) {}

ViewServer::~ViewServer() {
    if (!thread_.joinable()) return;
    // A server that has not begun to run does not hear that it shall stop.
    while (!server_->is_running() && !over_) std::this_thread::yield();
    server_->stop();
    thread_.join();
}

// A connection is for one request, so that idle viewers hold no thread.
void ViewServer::set_up() {
    server_->new_task_queue = [] { return new httplib::ThreadPool(most_at_once); };
    server_->set_socket_options(own_port_alone);
    server_->set_keep_alive_max_count(1);
    server_->set_keep_alive_timeout(patience_s);
    server_->set_read_timeout(patience_s);
    server_->set_write_timeout(patience_s);
    server_->set_payload_max_length(most_body_bytes);
    server_->set_default_headers(safe_headers);
    server_->set_tcp_nodelay(true);
    server_->set_pre_routing_handler([this](const auto& request, auto& response) {
        const int status = refusal(request);
        if (status == 0) {
            answer(request, response);
        } else {
            response.status = status;
            if (status == 405) response.set_header("Allow", "GET");
            response.set_content(status == 405 ? "only GET is answered here\n"
                                               : "this is not the address that gpr view has told\n",
                                 "text/plain");
        }
        return httplib::Server::HandlerResponse::Handled;
    });
}

std::string ViewServer::url() const {
    return fmt::format("http://{}/{}/", address_.text(), token_);
}

int ViewServer::refusal(const httplib::Request& request) const {
    if (request.get_header_value_count("Host") != 1 ||
        !names_view(request.get_header_value("Host"), address_)) {
        return 403;
    }
    if (!is_same_secret(parts_of(request.path).first, token_)) return 403;
    return request.method == "GET" ? 0 : 405;
}

void ViewServer::answer(const httplib::Request& request, httplib::Response& response) const {
    const std::string_view name = parts_of(request.path).second;
    if (name.empty()) {  // the files are relative to the folder
        response.set_redirect(fmt::format("/{}/", token_));
        return;
    }
    if (name == "/data") {
        const uint64_t asked = std::min<uint64_t>(number_of(request, "pid"), INT32_MAX);
        const auto pid = static_cast<pid_t>(asked);
        response.set_content(board_.answer(pid, number_of(request, "known")), "application/json");
        response.status = 200;
        return;
    }
    const auto files = view_files();
    const auto found =
        name == "/" ? files.begin() : std::ranges::find(files, name.substr(1), &ViewFile::name);
    if (found == files.end()) {
        response.status = 404;
        response.set_content("there is no such file\n", "text/plain");
        return;
    }
    response.status = 200;
    response.set_content(found->text.data(), found->text.size(), std::string(found->type).c_str());
}

}  // namespace gpr
