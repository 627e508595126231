#include "monitor/control/core_connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/file_text.h"
#include "base/log.h"
#include "monitor/home/debugged_process.h"
#include "monitor/home/debugging.h"
#include "monitor/home/home.h"

namespace gpr {

namespace {

// A client that takes nothing for so long is given up.
constexpr std::chrono::seconds patience{10};
constexpr std::chrono::milliseconds looks_every{2};

debug::CoreIdentity identity_of(pid_t pid) {
    debug::CoreIdentity its;
    its.group = getpgid(pid);
    its.session = getsid(pid);
    const std::string status = text_of(fmt::format("/proc/{}/status", pid));
    const auto number_after = [&](const char* key) {
        const size_t at = status.find(key);
        if (at == std::string::npos) return 0UL;
        return std::strtoul(&status[at + std::strlen(key)], nullptr, 10);
    };
    its.parent = static_cast<pid_t>(number_after("\nPPid:\t"));
    its.user = static_cast<uid_t>(number_after("\nUid:\t"));
    its.user_group = static_cast<gid_t>(number_after("\nGid:\t"));
    its.name = text_of(fmt::format("/proc/{}/comm", pid));
    if (its.name.ends_with('\n')) its.name.pop_back();
    its.arguments = text_of(fmt::format("/proc/{}/cmdline", pid));
    if (its.arguments.ends_with('\0')) its.arguments.pop_back();
    std::ranges::replace(its.arguments, '\0', ' ');
    return its;
}

std::string record(uint64_t offset, std::string_view bytes) {
    const CoreRecord header{offset, bytes.size()};
    return std::string(reinterpret_cast<const char*>(&header), sizeof header) + std::string(bytes);
}

}  // namespace

Task<Result<std::shared_ptr<CoreConnection>>> CoreConnection::begin(home::Home& home, pid_t pid) {
    auto process = co_await home.debugging.begin(pid, [](const debug::StopReason&) {});
    if (!process) co_return tl::make_unexpected(process.error());
    co_return std::shared_ptr<CoreConnection>(new CoreConnection(home, std::move(*process)));
}

CoreConnection::~CoreConnection() { process_->detach(); }

void CoreConnection::take(Fd fd) {
    fd_ = std::move(fd);
    spawn(send(shared_from_this()));
}

Task<void> CoreConnection::send(std::shared_ptr<CoreConnection> self) {
    const pid_t pid = self->process_->pid();
    spdlog::info("a core file of process {} is written", pid);
    debug::CoreIdentity identity = identity_of(pid);
    auto size = co_await debug::write_core(*self->process_, std::move(identity), *self);
    std::string last =
        size ? record(*size, "") : record(CoreRecord::is_error, size.error().message());
    co_await self->send_all(std::move(last));
    self->fd_ = Fd();
}

Task<bool> CoreConnection::put(uint64_t offset, std::string bytes) {
    std::string whole = record(offset, bytes);
    co_return co_await send_all(std::move(whole));
}

Task<bool> CoreConnection::send_all(std::string bytes) {
    auto until = Clock::now() + patience;
    for (size_t done = 0; done < bytes.size();) {
        const ssize_t sent = ::send(fd_.get(), bytes.data() + done, bytes.size() - done,
                                    MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            done += static_cast<size_t>(sent);
            until = Clock::now() + patience;
        } else if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            co_return false;
        } else if (Clock::now() > until) {
            co_return false;
        } else {
            co_await home_.loop.sleep(looks_every);
        }
    }
    co_return true;
}

}  // namespace gpr
