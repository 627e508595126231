#include "base/side_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

namespace gpr {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t most_bytes = 96 << 10;  // of one message; below what a socket takes at once
constexpr unsigned write_patience_s = 5;
constexpr int flush_ms = 100;
constexpr std::chrono::seconds slow{2}, most_seldom{60};

void write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(fd, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return;
        text.remove_prefix(static_cast<size_t>(written));
    }
}

bool shows_lines(int fd) {
    termios settings{};
    return tcgetattr(fd, &settings) == 0 && (settings.c_lflag & ICANON) != 0;
}

// Runs in the writing process.
class Writer {
public:
    Writer(int channel, int to) : channel_(channel), to_(to) {}

    void run() {
        std::vector<char> message(most_bytes);
        while (true) {
            pollfd waiting{channel_, POLLIN, 0};
            if (poll(&waiting, 1, until_next_line()) == 0) {
                say_what_goes_on();
                continue;
            }
            const ssize_t size = recv(channel_, message.data(), message.size(), 0);
            if (size < 0 && errno == EINTR) continue;
            if (size <= 0) return;
            take(message.front(), {message.data() + 1, static_cast<size_t>(size) - 1});
        }
    }

private:
    [[nodiscard]] int until_next_line() const {
        if (doing_.empty()) return -1;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_line_ - Clock::now());
        return static_cast<int>(std::max<int64_t>(0, left.count()));
    }

    void take(char kind, std::string_view text) {
        if (kind == 0) {
            write_in_time(text);
            [[maybe_unused]] const auto sent = ::send(channel_, "", 1, MSG_NOSIGNAL);
            return;
        }
        if (doing_.empty()) {
            began_ = Clock::now();
            next_line_ = began_ + slow;
        }
        doing_ = text;
    }

    void say_what_goes_on() {
        const auto taken = Clock::now() - began_;
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(taken).count();
        // Checked each time, because a full-screen program may have started since.
        if (shows_lines(to_)) write_in_time(fmt::format("gpr: {} ({} s)\n", doing_, seconds));
        next_line_ = Clock::now() + std::min<Clock::duration>(taken, most_seldom);
    }

    // If the reader does not read for that long, this process ends; the next text starts another
    // one.
    void write_in_time(std::string_view text) const {
        alarm(write_patience_s);
        write_all(to_, text);
        alarm(0);
    }

    int channel_;
    int to_;
    std::string doing_;
    Clock::time_point began_, next_line_;
};

[[noreturn]] void run_writer(int channel, int to) {
    // New numbers above all standard descriptors; every other descriptor of the parent is closed.
    channel = fcntl(channel, F_DUPFD_CLOEXEC, 16);
    to = fcntl(to, F_DUPFD_CLOEXEC, 16);
    close_range(0, static_cast<unsigned>(std::min(channel, to)) - 1, 0);
    close_range(static_cast<unsigned>(std::max(channel, to)) + 1, ~0U, 0);
    prctl(PR_SET_NAME, "gpr-writer");
    for (const int ignored : {SIGPIPE, SIGTTOU, SIGHUP, SIGINT, SIGTERM}) signal(ignored, SIG_IGN);
    signal(SIGALRM, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    Writer(channel, to).run();
    _exit(0);
}

}  // namespace

SideWriter::SideWriter(Fd to) : to_(std::move(to)), has_terminal_(shows_lines(to_.get())) {}

SideWriter::~SideWriter() { flush(); }

bool SideWriter::start() {
    if (channel_) return true;
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return false;
    Fd ours(ends[0]);
    const Fd theirs(ends[1]);
    const pid_t middle = fork();
    if (middle == 0) {
        const pid_t writer = fork();
        if (writer == 0) run_writer(theirs.get(), to_.get());
        _exit(0);
    }
    if (middle < 0) return false;
    while (waitpid(middle, nullptr, 0) < 0 && errno == EINTR) {
    }
    channel_ = std::move(ours);
    unwritten_ = 0;
    return true;
}

void SideWriter::send(Kind kind, std::string_view text) {
    std::string message(1, static_cast<char>(kind));
    message += text.substr(0, most_bytes - 1);
    const ssize_t sent =
        ::send(channel_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EPIPE) channel_.reset();  // it has ended: the next text starts another
    if (kind == Kind::text) (sent < 0 ? dropped_ : unwritten_)++;
}

void SideWriter::write(std::string_view text) {
    if (!to_ || !start()) return;
    take_acknowledgements();
    if (dropped_ > 0 && unwritten_ == 0) {
        const uint64_t lost = std::exchange(dropped_, 0);
        send(Kind::text, fmt::format("gpr: {} lines are left out here\n", lost));
    }
    for (; channel_ && !text.empty(); text.remove_prefix(std::min(text.size(), most_bytes - 1))) {
        send(Kind::text, text.substr(0, most_bytes - 1));
    }
}

void SideWriter::doing(std::string_view what) {
    if (!has_terminal_ || (what.empty() && !channel_) || !start()) return;
    send(Kind::doing, what);
}

void SideWriter::take_acknowledgements() {
    char byte = 0;
    while (unwritten_ > 0 && recv(channel_.get(), &byte, 1, MSG_DONTWAIT) == 1) --unwritten_;
}

void SideWriter::flush() {
    for (int ms = 0; ms < flush_ms && channel_; ms++) {
        take_acknowledgements();
        if (unwritten_ == 0) return;
        usleep(1000);
    }
}

}  // namespace gpr
