#include "monitor/control/control_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/file_text.h"
#include "base/terminal_text.h"
#include "monitor/tracee/process_stat.h"

namespace gpr {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t most_answer_bytes = 64 << 20;
// For stopping a process for a debugger; the session itself gives up somewhat earlier.
constexpr std::chrono::seconds patience_for_stop{20};
constexpr size_t most_line_bytes = 4096;

bool becomes_ready(int fd, short events, Clock::time_point until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    pollfd polled{fd, events, 0};
    return left.count() > 0 && poll(&polled, 1, static_cast<int>(left.count())) > 0;
}

Result<> send_all(int fd, const std::string& text) {
    const ssize_t sent = send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent == static_cast<ssize_t>(text.size())) return {};
    return fail(sent < 0 ? errno : 0, "the session does not listen");
}

Result<std::string> receive_all(int fd, std::chrono::seconds patience) {
    const auto until = Clock::now() + patience;
    std::string text;
    std::array<char, 65536> bytes{};
    while (text.size() < most_answer_bytes) {
        if (!becomes_ready(fd, POLLIN, until)) {
            return fail(session_is_mute(fd, patience.count()));
        }
        const ssize_t got = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (got == 0) return text;
        if (got < 0 && errno != EAGAIN && errno != EINTR) {
            return fail(errno, "the session's answer cannot be read");
        }
        if (got > 0) text.append(bytes.data(), static_cast<size_t>(got));
    }
    return fail("the session's answer is too long");
}

// Reads up to the line's end and leaves the rest in the socket. If the connection ends before that,
// returns what has arrived.
Result<std::string> receive_line(int fd) {
    const auto until = Clock::now() + patience_for_stop;
    std::string text;
    while (!text.ends_with('\n') && text.size() < most_line_bytes) {
        if (!becomes_ready(fd, POLLIN, until)) {
            return fail(session_is_mute(fd, patience_for_stop.count()));
        }
        char byte = 0;
        const ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT);
        if (got == 0) break;
        if (got < 0 && errno != EAGAIN && errno != EINTR) {
            return fail(errno, "the session's answer cannot be read");
        }
        if (got > 0) text += byte;
    }
    return text;
}

// Parses the answer. An error that the session reports is returned as an error.
Result<nlohmann::json> understood(const std::string& text) {
    nlohmann::json answer = nlohmann::json::parse(text, nullptr, false);
    if (!answer.is_object()) {
        return fail(text.empty() ? "the session ended before it answered"
                                 : "the session's answer is not understood; is its gpr another?");
    }
    if (const auto error = answer.find("error"); error != answer.end() && error->is_string()) {
        return fail(without_controls(error->get<std::string>()));
    }
    return answer;
}

// Whoever listens on the socket is the session's monitor, and so is who traces its program.
pid_t listener_of(int connection) {
    ucred listener{};
    socklen_t size = sizeof listener;
    const int got = getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &listener, &size);
    return got == 0 ? listener.pid : 0;
}

pid_t tracer_of(pid_t program) {
    constexpr std::string_view key = "\nTracerPid:\t";
    const std::string status = text_of(fmt::format("/proc/{}/status", program));
    const size_t at = status.find(key);
    return at == std::string::npos ? 0 : std::atoi(&status[at + key.size()]);
}

}  // namespace

std::string session_is_mute(int connection, int64_t seconds, pid_t program) {
    const pid_t monitor = connection < 0 ? tracer_of(program) : listener_of(connection);
    const auto its = scheduled(monitor);
    if (its && (its->state == 'T' || its->state == 't')) {
        return fmt::format(
            "the session did not answer within {0} s: its monitor, process {1}, is stopped; "
            "continue it with 'kill -CONT {1}'",
            seconds, monitor);
    }
    return fmt::format(
        "the session did not answer within {} s; see whether its monitor is stopped, or its link "
        "is cut",
        seconds);
}

std::vector<ControlClient> ControlClient::find(bool everybody) {
    std::vector<ControlClient> found;
    auto folders = everybody ? ControlFolder::of_everybody() : ControlFolder::of_this_user();
    for (ControlFolder& each : folders) {
        const auto folder = std::make_shared<const ControlFolder>(std::move(each));
        for (const std::string& name : folder->names()) {
            ControlClient client(folder, name);
            const auto connected = client.connect();
            const int error = connected ? 0 : connected.error().code;
            if (error == ECONNREFUSED) {
                folder->remove(name);
            } else if (connected || error == EAGAIN) {
                found.push_back(std::move(client));
            }
        }
    }
    std::ranges::sort(found, {}, &ControlClient::pid);
    return found;
}

// Verifies that the other end is the folder's owner: others may have linked a socket into it.
// EAGAIN: the session's backlog is full.
Result<Fd> ControlClient::connect(std::chrono::seconds patience) const {
    Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval time{patience.count(), patience.count() == 0 ? 1 : 0};  // 0 would be for ever
    if (!fd || setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time) != 0) {
        return fail(errno, "cannot make a socket");
    }
    const sockaddr_un address = folder_->address(name_);
    const auto* to = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(fd.get(), to, sizeof address) != 0) {
        return fail(errno, fmt::format("cannot connect to {}/{}", folder_->path(), name_));
    }
    ucred peer{};
    socklen_t size = sizeof peer;
    if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
        peer.uid != folder_->owner()) {
        return fail(
            fmt::format("{}/{} is not of user {}", folder_->path(), name_, folder_->owner()));
    }
    return fd;
}

bool ControlClient::is_there() const {
    const auto connected = connect();
    return connected || connected.error().code == EAGAIN;
}

Result<nlohmann::json> ControlClient::ask(const nlohmann::json& request,
                                          std::chrono::seconds patience) const {
    GPR_TRY(const Fd fd, send_request(request, patience));
    GPR_TRY(const std::string text, receive_all(fd.get(), patience));
    return understood(text);
}

Result<Fd> ControlClient::debug(pid_t pid) const {
    return begin({{"want", "debugger"}, {"pid", pid}});
}

Result<Fd> ControlClient::core(pid_t pid) const { return begin({{"want", "core"}, {"pid", pid}}); }

Result<Fd> ControlClient::trace(const std::string& order) const {
    return begin({{"want", "trace"}, {"order", order}});
}

// Of what follows on the connection after the answer.
Result<Fd> ControlClient::begin(const nlohmann::json& request) const {
    GPR_TRY(Fd fd, send_request(request, usual_patience));
    GPR_TRY(const std::string text, receive_line(fd.get()));
    GPR_CHECK(understood(text));
    return fd;
}

Result<Fd> ControlClient::send_request(const nlohmann::json& request,
                                       std::chrono::seconds patience) const {
    auto connected = connect(patience);
    if (!connected && connected.error().code == EAGAIN) {
        return fail(session_is_mute(-1, patience.count(), pid()));
    }
    GPR_TRY(Fd fd, std::move(connected));
    GPR_CHECK(send_all(fd.get(), request.dump() + "\n"));
    return fd;
}

}  // namespace gpr
