#include "tools/view_server.h"

#include <openssl/crypto.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "tools/view_files.h"

namespace gpr {

namespace {

constexpr size_t token_bytes = 32;
constexpr size_t most_at_once = 32;
constexpr int second_ms = 1000;

// Nothing but what this server has, no other page around it, and no trace of the address.
constexpr const char* safe_headers =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "Cache-Control: no-store\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n";

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

uint64_t number_of(const HttpRequest& request, std::string_view name) {
    const std::string_view text = request.parameter(name);
    uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

HttpAnswer refusal(const char* status, const char* why) { return {status, "text/plain", why, ""}; }

}  // namespace

Result<std::unique_ptr<ViewServer>> ViewServer::listen(ViewAddress address, ViewBoard& board) {
    GPR_TRY(std::string token, new_token_text());
    auto http = HttpServer::create(address.text(), most_at_once);
    if (!http) {
        return fail(
            fmt::format("cannot listen on {}: it is taken, or not this host's; choose "
                        "another port, or none for one that is free",
                        address.text()));
    }
    address.port = http->endpoint().port;
    std::unique_ptr<ViewServer> made(
        new ViewServer(std::move(*http), std::move(address), std::move(token), board));
    if (!made->over_) return fail(errno, "cannot make an eventfd");
    made->thread_ = std::thread([server = made.get()] { server->serve(); });
    return made;
}

ViewServer::ViewServer(HttpServer http, ViewAddress address, std::string token, ViewBoard& board)
    : http_(std::move(http)),
      address_(std::move(address)),
      token_(std::move(token)),
      board_(board),
      over_(eventfd(0, EFD_CLOEXEC)) {}

ViewServer::~ViewServer() {
    if (!thread_.joinable()) return;
    eventfd_write(over_.get(), 1);
    thread_.join();
}

std::string ViewServer::url() const {
    return fmt::format("http://{}/{}/", address_.text(), token_);
}

void ViewServer::serve() {
    std::array<pollfd, 2> events{{{http_.fd(), POLLIN, 0}, {over_.get(), POLLIN, 0}}};
    for (;;) {
        poll(events.data(), events.size(), http_.is_busy() ? second_ms : -1);
        if (events[1].revents != 0) return;
        http_.serve([this](uint64_t id, const HttpRequest& request) {
            HttpAnswer with = answer(request);
            with.headers += safe_headers;
            http_.answer(id, with);
        });
        http_.expire();
    }
}

HttpAnswer ViewServer::answer(const HttpRequest& request) const {
    const bool came_here = request.hosts.size() == 1 && names_view(request.hosts[0], address_);
    if (!came_here || !is_same_secret(parts_of(request.path()).first, token_)) {
        return refusal("403 Forbidden", "this is not the address that gpr view has told\n");
    }
    if (request.method == "GET") return answer_to_viewer(request);
    HttpAnswer refused = refusal("405 Method Not Allowed", "only GET is answered here\n");
    refused.headers = "Allow: GET\r\n";
    return refused;
}

HttpAnswer ViewServer::answer_to_viewer(const HttpRequest& request) const {
    const std::string_view name = parts_of(request.path()).second;
    if (name.empty()) {  // the files are relative to the folder
        HttpAnswer elsewhere = refusal("302 Found", "");
        elsewhere.headers = fmt::format("Location: /{}/\r\n", token_);
        return elsewhere;
    }
    if (name == "/data") {
        const uint64_t asked = std::min<uint64_t>(number_of(request, "pid"), INT32_MAX);
        const auto pid = static_cast<pid_t>(asked);
        return {"200 OK", "application/json", board_.answer(pid, number_of(request, "known")), ""};
    }
    const auto files = view_files();
    const auto found =
        name == "/" ? files.begin() : std::ranges::find(files, name.substr(1), &ViewFile::name);
    if (found == files.end()) return refusal("404 Not Found", "there is no such file\n");
    return {"200 OK", std::string(found->type), std::string(found->text), ""};
}

}  // namespace gpr
