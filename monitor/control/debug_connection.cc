#include "monitor/control/debug_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>

#include "base/log.h"
#include "monitor/home/debugged_process.h"
#include "monitor/home/debugging.h"
#include "monitor/home/home.h"

namespace gpr {

namespace {
// A debugger that does not read its answers is dropped.
constexpr size_t most_unsent_bytes = 4 << 20;
constexpr size_t most_at_once = 16384;
}  // namespace

Task<Result<std::shared_ptr<DebugConnection>>> DebugConnection::begin(home::Home& home, pid_t pid) {
    // Filled in below: the process can stop again only after the debugger has continued it.
    auto connection = std::make_shared<std::weak_ptr<DebugConnection>>();
    home::Debugging::Tell tell = [connection](const debug::StopReason& why) {
        if (auto its = connection->lock()) its->server_.on_stop(why);
    };
    auto process = co_await home.debugging.begin(pid, std::move(tell));
    if (!process) co_return tl::make_unexpected(process.error());
    std::shared_ptr<DebugConnection> made(new DebugConnection(home, std::move(*process)));
    *connection = made;
    co_return made;
}

DebugConnection::DebugConnection(home::Home& home, std::shared_ptr<home::DebuggedProcess> process)
    : home_(home),
      process_(std::move(process)),
      server_(
          *process_, [this](std::string bytes) { send(bytes); },
          [this] {
              ends_ = true;
              flush();
          }) {}

DebugConnection::~DebugConnection() {
    watch_.reset();
    server_.closed();
    process_->detach();
}

void DebugConnection::take(Fd fd, std::function<void()> over) {
    fd_ = std::move(fd);
    over_ = std::move(over);
    spdlog::info("a debugger has process {}", process_->pid());
    flush();
}

void DebugConnection::watch() {
    if (!fd_) return;
    const uint32_t events = POLLIN | (unsent_.empty() ? 0U : POLLOUT);
    watch_ = home_.loop.watch(fd_.get(), events, [this](uint32_t ready) { on_ready(ready); });
}

void DebugConnection::on_ready(uint32_t events) {
    if (events & POLLOUT) return flush();
    std::array<char, most_at_once> bytes{};
    const ssize_t got = recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return end();
    server_.receive({bytes.data(), static_cast<size_t>(got)});
}

void DebugConnection::send(std::string_view bytes) {
    unsent_ += bytes;
    if (unsent_.size() > most_unsent_bytes) {
        spdlog::warn("the debugger of process {} does not read its answers", process_->pid());
        unsent_.clear();
        ends_ = true;
    }
    flush();
}

void DebugConnection::flush() {
    if (!fd_) return;
    while (!unsent_.empty()) {
        const ssize_t sent =
            ::send(fd_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == EAGAIN) break;
        if (sent < 0) return end();
        unsent_.erase(0, static_cast<size_t>(sent));
    }
    if (ends_ && unsent_.empty()) return end();
    watch();
}

// over_ runs later, because the server may be the caller.
void DebugConnection::end() {
    watch_.reset();
    fd_ = Fd();
    if (over_) {
        home_.loop.after(std::chrono::milliseconds(0), std::exchange(over_, nullptr));
    }
}

}  // namespace gpr
