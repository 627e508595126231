#include "monitor/launch/caretaker.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string_view>

#include "base/file_text.h"
#include "monitor/tracee/process_stat.h"

namespace gpr {

namespace {

constexpr int begins = caretaker_listener + 1;  // a pipe that execve of gpr closes

[[noreturn]] void become_caretaker(int listener, int begun, const std::vector<std::string>& words) {
    setsid();
    const int null = open("/dev/null", O_RDWR);
    for (int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, number);
    dup2(listener, caretaker_listener);
    dup3(begun, begins, O_CLOEXEC);
    close_range(begins + 1, ~0U, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execv("/proc/self/exe", arguments.data());
    _exit(EXIT_FAILURE);
}

// The words in /proc/PID/cmdline.
std::vector<std::string> words_of(pid_t pid) {
    std::vector<std::string> words;
    const std::string all = text_of(fmt::format("/proc/{}/cmdline", pid));
    for (size_t at = 0; at < all.size();) {
        const size_t end = std::min(all.find('\0', at), all.size());
        words.push_back(all.substr(at, end - at));
        at = end + 1;
    }
    return words;
}

// Whether the process runs our executable, rather than only using the command's name.
bool is_caretaker(pid_t pid, const std::vector<std::string>& words) {
    if (words.size() < 3 || words[1] != caretaker_command) return false;
    std::error_code error;
    const auto one = std::filesystem::read_symlink("/proc/self/exe", error);
    const auto other = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), error);
    return !error && one == other;
}

// Identifies a process by more than its pid, which may be reused: proc_pid_stat(5), starttime.
std::string name_of(pid_t pid) {
    constexpr size_t starttime = 19;  // counted after the name
    const auto fields = stat_fields(fmt::format("/proc/{}", pid));
    return fmt::format("{}@{}", pid, fields.size() > starttime ? fields[starttime] : "");
}

std::optional<uid_t> user_of(pid_t pid) {
    struct stat its {};
    if (stat(fmt::format("/proc/{}", pid).c_str(), &its) != 0) return std::nullopt;
    return its.st_uid;
}

bool anybody_has_filter(const Fd& listener) {
    pollfd state{listener.get(), POLLIN, 0};
    poll(&state, 1, 0);
    return !(state.revents & (POLLHUP | POLLERR | POLLNVAL));
}

}  // namespace

std::string name_of_filter(std::span<const sock_filter> filter) {
    const std::string_view bytes(reinterpret_cast<const char*>(filter.data()), filter.size_bytes());
    return fmt::format("{:016x}", std::hash<std::string_view>{}(bytes));
}

namespace {

Result<> leave_caretaker(const LeftFilter& left, const std::string& filter) {
    const auto& [listener, processes] = left;
    if (!anybody_has_filter(listener)) return {};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return fail(errno, "cannot make a pipe");
    const Fd begun(ends[0]);
    Fd begins_now(ends[1]);
    // Duplicated to above the numbers that they will get in the new process.
    const Fd high(fcntl(listener.get(), F_DUPFD, begins + 1));
    Fd high_pipe(fcntl(begins_now.get(), F_DUPFD_CLOEXEC, begins + 1));
    if (!high || !high_pipe) return fail(errno, "cannot keep the program's filter answered");
    std::vector<std::string> words{"gpr", caretaker_command, filter};
    for (const pid_t pid : processes) words.push_back(name_of(pid));
    const pid_t middle = fork();
    if (middle < 0) return fail(errno, "cannot keep the program's filter answered");
    if (middle == 0) {
        if (fork() == 0) become_caretaker(high.get(), high_pipe.get(), words);
        _exit(EXIT_SUCCESS);
    }
    waitpid(middle, nullptr, 0);
    begins_now = Fd();
    high_pipe = Fd();
    char none = 0;
    while (read(begun.get(), &none, 1) < 0 && errno == EINTR) {
    }
    return {};
}

}  // namespace

Result<> leave_caretakers(const std::vector<LeftFilter>& left, const std::string& filter) {
    Result<> all;
    for (const LeftFilter& each : left) {
        if (auto one = leave_caretaker(each, filter); !one) all = one;
    }
    return all;
}

int answer_filter() {
    for (;;) {
        pollfd reported{caretaker_listener, POLLIN, 0};
        if (poll(&reported, 1, -1) < 0 && errno != EINTR) return EXIT_FAILURE;
        if (!(reported.revents & POLLIN)) {
            if (reported.revents != 0) return EXIT_SUCCESS;  // no process has the filter any more
            continue;
        }
        seccomp_notif n{};
        if (ioctl(caretaker_listener, SECCOMP_IOCTL_NOTIF_RECV, &n) != 0) continue;
        seccomp_notif_resp go_on{n.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        ioctl(caretaker_listener, SECCOMP_IOCTL_NOTIF_SEND, &go_on);
    }
}

std::optional<unsigned> generations_to(const std::vector<std::string>& processes, pid_t process) {
    unsigned generations = 0;
    for (pid_t pid = process; pid > 1; pid = parent_of(pid), generations++) {
        if (std::ranges::find(processes, name_of(pid)) != processes.end()) return generations;
    }
    return std::nullopt;
}

std::optional<Caretaker> caretaker_of(pid_t process) {
    std::optional<Caretaker> nearest;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
        const pid_t pid = std::atoi(entry.path().filename().c_str());
        if (pid <= 0) continue;
        const auto words = words_of(pid);
        // Trusts only processes of the same user, or of root.
        const auto user = user_of(pid);
        if (!is_caretaker(pid, words) || (user != user_of(process) && user != 0)) continue;
        std::vector<std::string> processes(words.begin() + 3, words.end());
        const auto generations = generations_to(processes, process);
        if (!generations || (nearest && nearest->generations <= *generations)) continue;
        nearest = Caretaker{pid, words[2], std::move(processes), *generations};
    }
    return nearest;
}

Result<Fd> relieve(const Caretaker& caretaker) {
    const Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, caretaker.pid, 0)));
    Fd listener(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), caretaker_listener, 0)));
    if (!listener) {
        return fail(errno, fmt::format("cannot take over from process {}, which answers for the "
                                       "filter of an earlier session",
                                       caretaker.pid));
    }
    syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
    return listener;
}

}  // namespace gpr
