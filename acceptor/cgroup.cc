#include "acceptor/cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace gpr {
namespace {

constexpr std::string_view parent_name = "gpr.slice";
constexpr std::string_view session_prefix = "session-";
constexpr auto removal_deadline = std::chrono::seconds(5);

Result<> write_file(const std::string& path, const std::string& text) {
    const Fd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file) return fail(errno, "open " + path);
    if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        return fail(errno, fmt::format("write '{}' to {}", text, path));
    }
    return {};
}

// A line of mountinfo: "36 35 0:31 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw"
Result<std::string> cgroup2_mount_point() {
    std::ifstream file("/proc/self/mountinfo");
    for (std::string line; std::getline(file, line);) {
        const auto separator = line.find(" - ");
        if (separator == std::string::npos) continue;
        if (line.compare(separator + 3, 8, "cgroup2 ") != 0) continue;
        std::istringstream in(line);
        std::string field;
        for (int i = 0; i < 5; ++i) in >> field;
        return field;
    }
    return fail("no cgroup v2 is mounted");
}

Result<std::string> own_cgroup() {
    GPR_TRY(auto mount_point, cgroup2_mount_point());
    std::ifstream file("/proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {
        if (line.compare(0, 3, "0::") != 0) continue;
        auto path = mount_point + line.substr(3);
        while (path.size() > 1 && path.back() == '/') path.pop_back();
        return path;
    }
    return fail("this process is in no cgroup v2");
}

// Best effort: what could not be enabled shows when a limit is set. A cgroup with processes cannot
// have controllers for children (the root can), so the daemon would have to live alone in a leaf.
void enable_controllers(const std::string& path) {
    for (const char* controller : {"+memory", "+pids"}) {
        static_cast<void>(write_file(path + "/cgroup.subtree_control", controller));
    }
}

bool try_remove_cgroup(const std::string& path) {
    if (rmdir(path.c_str()) == 0 || errno != EBUSY) return true;
    static_cast<void>(write_file(path + "/cgroup.kill", "1"));
    return rmdir(path.c_str()) == 0 || errno != EBUSY;
}

void remove_cgroup(const std::string& path) {
    const auto give_up_at = std::chrono::steady_clock::now() + removal_deadline;
    while (!try_remove_cgroup(path) && std::chrono::steady_clock::now() < give_up_at) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

std::string session_path(const std::string& parent, pid_t worker) {
    return fmt::format("{}/{}{}", parent, session_prefix, worker);
}

// Of daemons that were killed together with their workers.
void remove_stale_sessions(const std::string& parent) {
    std::error_code error;
    std::vector<std::string> stale;
    for (const auto& entry : std::filesystem::directory_iterator(parent, error)) {
        const auto name = entry.path().filename().string();
        if (name.compare(0, session_prefix.size(), session_prefix) != 0) continue;
        pid_t worker = 0;
        std::from_chars(name.data() + session_prefix.size(), name.data() + name.size(), worker);
        if (worker > 0 && kill(worker, 0) == -1 && errno == ESRCH) stale.push_back(entry.path());
    }
    for (const auto& path : stale) remove_cgroup(path);
}

}  // namespace

Result<CgroupParent> CgroupParent::create() {
    GPR_TRY(const auto own, own_cgroup());
    CgroupParent parent;
    const auto path = fmt::format("{}/{}", own, parent_name);
    if (mkdir(path.c_str(), 0755) == -1 && errno != EEXIST) return fail(errno, "make " + path);
    parent.path_ = path;
    parent.creator_ = getpid();
    enable_controllers(own);
    enable_controllers(path);
    remove_stale_sessions(path);
    return parent;
}

CgroupParent::CgroupParent(CgroupParent&& other) noexcept
    : path_(std::move(other.path_)), creator_(std::exchange(other.creator_, -1)) {}

CgroupParent::~CgroupParent() {
    if (creator_ == getpid()) rmdir(path_.c_str());
}

Result<SessionCgroup> CgroupParent::create_session(const CgroupLimits& limits) const {
    SessionCgroup session;
    const auto path = session_path(path_, getpid());
    // Left by a worker that had this pid before.
    if (mkdir(path.c_str(), 0755) == -1 && errno == EEXIST) remove_cgroup(path);
    if (mkdir(path.c_str(), 0755) == -1 && errno != EEXIST) return fail(errno, "make " + path);
    session.path_ = path;
    session.directory_ = Fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!session.directory_) return fail(errno, "open " + path);
    const auto limit = [&](const char* file, uint64_t value) {
        if (value == 0) return;
        const auto written = write_file(fmt::format("{}/{}", path, file), std::to_string(value));
        if (written) return;
        if (!session.missing_limits_.empty()) session.missing_limits_ += "; ";
        session.missing_limits_ += written.error().message();
    };
    limit("memory.max", limits.memory_bytes);
    limit("pids.max", limits.tasks);
    return session;
}

bool CgroupParent::try_remove_session(pid_t worker) const {
    return try_remove_cgroup(session_path(path_, worker));
}

SessionCgroup::~SessionCgroup() {
    if (directory_) remove_cgroup(path_);
}

}  // namespace gpr
