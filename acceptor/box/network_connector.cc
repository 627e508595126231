// There are three processes, each the child of the one before: the worker, a watcher, pasta. The
// watcher is the first process of a pid namespace and is killed when the worker ends
// (PR_SET_PDEATHSIG); the kernel then kills everything in that namespace. pasta itself could not
// use PR_SET_PDEATHSIG, because changing its user clears it. Nor could it live in the box's pid
// namespace: programs have the same pids there as at home, and pasta would take one of them.
#include "acceptor/box/network_connector.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <spdlog/spdlog.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "acceptor/box/box_interface.h"
#include "acceptor/box/host_network.h"
#include "acceptor/box/privileges.h"
#include "acceptor/box/sandbox.h"

namespace gpr {
namespace {

constexpr const char* program_name = "pasta";
constexpr const char* usual_path = "/usr/local/bin:/usr/bin:/bin";
// Where Debian's AppArmor profile for pasta allows it to open namespaces.
constexpr const char* namespaces_folder = "/run/user/0/netns";
constexpr auto start_deadline = std::chrono::seconds(10);
constexpr size_t most_output = 4096;
// The last byte through the pipe if the start succeeded; never part of pasta's output.
constexpr char is_ready = '\x06';

std::string bound_to(const char* name) { return fmt::format("{}/{}", namespaces_folder, name); }

class Watcher {
public:
    Watcher(const ConnectorOptions& options, const ConnectorPlan& plan, const HostNetwork& host)
        : options_(options), plan_(plan), host_(host) {}

    [[noreturn]] void run(const Fd& alive, const Fd& report) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "gpr-network");
        pollfd worker_pipe{alive.get(), 0, 0};
        if (poll(&worker_pipe, 1, 0) != 0)
            _exit(0);  // the worker ended before PR_SET_PDEATHSIG was set
        report_ = report.get();
        keep_only_files({report_});
        need(prepare());
        const pid_t pasta = fork();
        if (pasta == 0) become_pasta();
        need(from_libc(pasta, "start pasta"));
        int status = 0;
        // pasta's first process ends, leaving a daemon, when the network is ready.
        TEMP_FAILURE_RETRY(waitpid(pasta, &status, 0));
        if (status != 0) _exit(1);  // pasta has printed why
        need(keep_only_capabilities(0));
        prctl(PR_SET_DUMPABLE, 0);
        [[maybe_unused]] const auto sent = write(report_, &is_ready, 1);
        close(report_);
        // Waits for pasta's daemon: until no child is left.
        while (TEMP_FAILURE_RETRY(waitpid(-1, &status, 0)) > 0) {
        }
        spdlog::error("the session has no network any more: pasta ended, status {:#x}", status);
        _exit(0);
    }

private:
    template <class T>
    void need(const Result<T>& done) {
        if (done) return;
        const std::string text = done.error().message();
        [[maybe_unused]] const auto sent = write(report_, text.data(), text.size());
        _exit(1);
    }

    // Keeps regular files (the log, the lock of the session's user), but no connections, which
    // would stay open as long as this process.
    static void keep_only_files(std::initializer_list<int> kept) {
        std::vector<int> open_here;
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
            open_here.push_back(std::atoi(entry.path().filename().c_str()));
        }
        for (const int fd : open_here) {
            struct stat status {};
            const bool is_file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
            if (fd > STDERR_FILENO && !is_file && std::ranges::count(kept, fd) == 0) close(fd);
        }
    }

    Result<> prepare() {
        GPR_CHECK(bind_namespaces());
        const Fd here(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
        const Fd there(open(bound_to("net").c_str(), O_RDONLY | O_CLOEXEC));
        if (!here || !there) return fail(errno, "open network namespaces");
        GPR_CHECK(from_libc(setns(there.get(), CLONE_NEWNET), "enter the box's network"));
        GPR_CHECK(
            make_box_interface({plan_.interface, host_.addresses, options_.user, options_.ports}));
        GPR_CHECK(from_libc(setns(here.get(), CLONE_NEWNET), "leave the box's network"));
        return {};
    }

    // Bind-mounted as files: pasta runs as the session's user, and may not open /proc/PID/ns.
    Result<> bind_namespaces() const {
        GPR_CHECK(from_libc(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr),
                            "make mounts private"));
        GPR_CHECK(from_libc(mount("gpr", "/run", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                                  "size=16k,nr_inodes=16,mode=0755"),
                            "mount a folder for namespaces"));
        for (const char* const folder : {"/run/user", "/run/user/0", namespaces_folder}) {
            GPR_CHECK(from_libc(mkdir(folder, 0755), "make a folder for namespaces"));
        }
        for (const char* const name : {"user", "net"}) {
            const auto source = fmt::format("/proc/{}/ns/{}", options_.box_init, name);
            const auto place = bound_to(name);
            const Fd file(open(place.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
            GPR_CHECK(from_libc(mount(source.c_str(), place.c_str(), nullptr, MS_BIND, nullptr),
                                "bind the box's namespaces"));
        }
        return {};
    }

    [[noreturn]] void become_pasta() {
        const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        dup2(report_, STDERR_FILENO);
        close_range(STDERR_FILENO + 1, ~0U, 0);
        // The worker's limit is meant for the worker only.
        rlimit data{};
        getrlimit(RLIMIT_DATA, &data);
        data.rlim_cur = data.rlim_max;
        setrlimit(RLIMIT_DATA, &data);
        signal(SIGPIPE, SIG_DFL);  // pasta of 2023 treats an ignored SIGPIPE as a failure
        std::vector<std::string> words = arguments();
        std::vector<char*> pointers;
        for (std::string& word : words) pointers.push_back(word.data());
        pointers.push_back(nullptr);
        std::array<char*, 1> environment{nullptr};
        execve(options_.program.c_str(), pointers.data(), environment.data());
        const std::string text = fmt::format("{}: {}", options_.program, strerror(errno));
        [[maybe_unused]] const auto sent = write(STDERR_FILENO, text.data(), text.size());
        _exit(1);
    }

    // These options exist since passt of 2023, which Debian 12 has.
    [[nodiscard]] std::vector<std::string> arguments() const {
        std::vector<std::string> words{program_name,      "--quiet",
                                       "--runas",         fmt::format("{0}:{0}", options_.user),
                                       "--userns",        bound_to("user"),
                                       "--netns",         bound_to("net"),
                                       "--no-netns-quit", "--config-net",
                                       "--ns-ifname",     plan_.interface};
        // No access to this host, neither by the router's address nor through ports on the box's
        // loopback.
        for (const char* const word : {"--no-map-gw", "-T", "none", "-U", "none"}) {
            words.emplace_back(word);
        }
        const std::string ports = options_.ports.none() ? "auto" : options_.ports.text();
        words.insert(words.end(), {"-t", ports, "-u", ports});
        // Names are resolved at home.
        words.insert(words.end(), {"-D", "none", "-S", "none"});
        words.insert(words.end(), plan_.options.begin(), plan_.options.end());
        return words;
    }

    const ConnectorOptions& options_;
    const ConnectorPlan& plan_;
    const HostNetwork& host_;
    int report_ = -1;
};

long clone_watcher(int* pidfd, int cgroup_fd) {
    clone_args args{};
    args.flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_PIDFD | CLONE_CLEAR_SIGHAND;
    args.pidfd = reinterpret_cast<uint64_t>(pidfd);
    args.exit_signal = SIGCHLD;
    if (cgroup_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = static_cast<uint64_t>(cgroup_fd);
    }
    return syscall(SYS_clone3, &args, sizeof(args));
}

// Reads pasta's output until it is ready, has ended or has taken too long.
std::string listen_to(const Fd& report) {
    const auto give_up_at = std::chrono::steady_clock::now() + start_deadline;
    std::string said;
    while (said.size() < most_output && (said.empty() || said.back() != is_ready)) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            give_up_at - std::chrono::steady_clock::now());
        pollfd more{report.get(), POLLIN, 0};
        if (left.count() <= 0 || poll(&more, 1, static_cast<int>(left.count())) == 0) {
            return said + "it does not get ready";
        }
        std::array<char, 512> text{};
        const ssize_t got = TEMP_FAILURE_RETRY(read(report.get(), text.data(), text.size()));
        if (got <= 0) break;
        said.append(text.data(), static_cast<size_t>(got));
    }
    return said;
}

// Joins it into one line, without complaints about a missing system log.
std::string in_one_line(const std::string& said) {
    std::istringstream lines(said);
    std::string all;
    for (std::string line; std::getline(lines, line);) {
        if (line.empty() || line.ends_with("to syslog")) continue;
        all += (all.empty() ? "" : "; ") + line;
    }
    return all.empty() ? "it ended" : all;
}

}  // namespace

Result<std::string> find_network_connector() {
    const char* const path = getenv("PATH");
    std::istringstream folders(path != nullptr && *path != '\0' ? path : usual_path);
    for (std::string folder; std::getline(folders, folder, ':');) {
        const auto found = fmt::format("{}/{}", folder, program_name);
        if (folder.starts_with('/') && access(found.c_str(), X_OK) == 0) return found;
    }
    return fail(
        "--allow-network gives each session a network of its own, which the program pasta joins to "
        "this host's, and that is not installed; 'apt install passt', or give sessions this host's "
        "own network, its loopback services included, with --allow-host-network");
}

Result<> try_network_connector(const std::string& program, const UserIds& users) {
    if (users.none()) {
        return fail(
            "--allow-network gives each session a network of its own, and for that each must be a "
            "user of its own (--uid-range); or give sessions this host's own network, its loopback "
            "services included, with --allow-host-network");
    }
    SandboxOptions options;
    options.user = users.first;
    GPR_TRY(const auto box, Sandbox::create(options));
    const auto joined = NetworkConnector::start({program, box->init_pid(), options.user});
    if (!joined) {
        spdlog::warn("as it is now, sessions that want a network will be refused: {}",
                     joined.error().message());
    }
    return {};
}

Result<std::unique_ptr<NetworkConnector>> NetworkConnector::start(const ConnectorOptions& options) {
    GPR_TRY(const HostNetwork host, look_at_host_network());
    GPR_TRY(const ConnectorPlan plan, plan_connector(host));
    std::array<int, 2> alive{}, report{};
    GPR_CHECK(from_libc(pipe2(alive.data(), O_CLOEXEC), "make a pipe"));
    const Fd alive_reader(alive[0]);
    std::unique_ptr<NetworkConnector> connector(new NetworkConnector);
    connector->alive_ = Fd(alive[1]);
    GPR_CHECK(from_libc(pipe2(report.data(), O_CLOEXEC), "make a pipe"));
    const Fd report_reader(report[0]);
    Fd report_writer(report[1]);
    int pidfd = -1;
    const long pid = clone_watcher(&pidfd, options.cgroup_fd);
    if (pid == 0) {
        connector->alive_.reset();
        Watcher(options, plan, host).run(alive_reader, report_writer);
    }
    if (pid == -1) return fail(errno, "start what connects the session's network");
    connector->pid_ = static_cast<pid_t>(pid);
    connector->pidfd_ = Fd(pidfd);
    report_writer.reset();
    const std::string said = listen_to(report_reader);
    if (!said.empty() && said.back() == is_ready) return connector;
    return fail(fmt::format("{} could not connect the session's network: {}", options.program,
                            in_one_line(said)));
}

NetworkConnector::~NetworkConnector() {
    if (pid_ <= 0) return;
    syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
    TEMP_FAILURE_RETRY(waitpid(pid_, nullptr, __WALL));
}

}  // namespace gpr
