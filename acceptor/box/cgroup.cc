#include "acceptor/box/cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/own_cgroup.h"

namespace gpr {
namespace {

constexpr std::string_view parent_name = "gpr.slice";
constexpr std::string_view leaf_name = "gpr-acceptor";
constexpr std::string_view session_prefix = "session-";
constexpr uint64_t cpu_period_us = 100'000;
constexpr auto removal_deadline = std::chrono::seconds(5);

Result<> write_file(const std::string& path, const std::string& text) {
    const Fd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file) return fail(errno, "open " + path);
    if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        return fail(errno, fmt::format("write '{}' to {}", text, path));
    }
    return {};
}

struct Controller {
    const char* name;
    const char* option;
    bool wanted;
};

std::vector<Controller> controllers_for(const SessionLimits& limits) {
    std::vector<Controller> controllers = {
        {"memory", "session-memory", limits.memory_bytes != 0},
        {"cpu", "session-cpus", limits.milli_cpus != 0},
        {"pids", "session-pids", limits.tasks != 0},
        {"dmem", "session-device-memory", limits.device_memory_bytes != 0},
    };
    std::erase_if(controllers, [](const Controller& c) { return !c.wanted; });
    return controllers;
}

Failure cannot_limit(const Controller& controller, const std::string& why) {
    return fail(fmt::format("--{} cannot be had: {}", controller.option, why));
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

// Left by daemons that were killed together with their workers.
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

// Only the root cgroup may have processes and limit its children at the same time. In any other one
// with processes, enabling "memory" is refused, and "pids" would make the children threaded.
bool is_root_cgroup(const std::string& path) {
    return access((path + "/cgroup.type").c_str(), F_OK) != 0;
}

bool has_processes(const std::string& path) {
    std::ifstream file(path + "/cgroup.procs");
    pid_t pid = 0;
    return static_cast<bool>(file >> pid);
}

// Lines such as "drm/0000:03:00.0/vram0 8514437120"; empty without the dmem controller.
std::vector<std::string> device_regions(const std::string& mount_point) {
    std::ifstream file(mount_point + "/dmem.capacity");
    std::vector<std::string> regions;
    for (std::string line; std::getline(file, line);) {
        regions.push_back(line.substr(0, line.find(' ')));
    }
    return regions;
}

std::string read_small_file(int directory, const char* name) {
    const Fd file(openat(directory, name, O_RDONLY | O_CLOEXEC));
    std::array<char, 1024> text{};
    if (!file || read(file.get(), text.data(), text.size() - 1) <= 0) return {};
    return text.data();
}

// The number after a key in a file such as memory.events.
uint64_t count_in(int cgroup_fd, const char* file, std::string_view key) {
    std::istringstream in(read_small_file(cgroup_fd, file));
    uint64_t value = 0;
    for (std::string word; in >> word >> value;) {
        if (word == key) return value;
    }
    return 0;
}

}  // namespace

std::vector<LimitFile> limit_files(const SessionLimits& limits,
                                   const std::vector<std::string>& regions) {
    std::vector<LimitFile> files;
    if (limits.memory_bytes != 0) {
        files.push_back({"memory.max", std::to_string(limits.memory_bytes)});
        // The whole session is killed together, and it cannot evade the limit by using swap.
        files.push_back({"memory.oom.group", "1"});
        files.push_back({"memory.swap.max", "0", true});
    }
    if (limits.tasks != 0) files.push_back({"pids.max", std::to_string(limits.tasks)});
    if (limits.milli_cpus != 0) {
        files.push_back({"cpu.max", fmt::format("{} {}", limits.milli_cpus * cpu_period_us / 1000,
                                                cpu_period_us)});
    }
    if (limits.device_memory_bytes != 0) {
        for (const std::string& region : regions) {
            files.push_back({"dmem.max", fmt::format("{} {}", region, limits.device_memory_bytes)});
        }
    }
    return files;
}

std::string limit_exceeded(int cgroup_fd, const SessionLimits& limits) {
    if (cgroup_fd < 0 || limits.memory_bytes == 0) return {};
    if (count_in(cgroup_fd, "memory.events", "oom_kill") == 0) return {};
    return fmt::format(
        "went beyond the {} MiB of memory that the acceptor gives a session "
        "(--session-memory there)",
        limits.memory_bytes >> 20);
}

bool has_room_for_tasks(int cgroup_fd, const SessionLimits& limits, uint64_t more) {
    if (cgroup_fd < 0 || limits.tasks == 0) return true;
    const auto now = read_small_file(cgroup_fd, "pids.current");
    return std::strtoull(now.c_str(), nullptr, 10) + more <= limits.tasks;
}

Result<CgroupParent> CgroupParent::create(const SessionLimits& limits) {
    const auto own = own_cgroup();
    if (!own && limits.any()) {
        return cannot_limit(controllers_for(limits).front(), own.error().message());
    }
    if (!own) return tl::make_unexpected(own.error());
    CgroupParent parent;
    parent.creator_ = getpid();
    parent.own_path_ = own->path;
    parent.mount_point_ = own->mount_point;
    GPR_CHECK(parent.enable_controllers(limits));
    const auto path = fmt::format("{}/{}", own->path, parent_name);
    if (mkdir(path.c_str(), 0755) == -1 && errno != EEXIST) return fail(errno, "make " + path);
    parent.path_ = path;
    for (const Controller& controller : controllers_for(limits)) {
        const auto enabled =
            write_file(path + "/cgroup.subtree_control", fmt::format("+{}", controller.name));
        if (!enabled) return cannot_limit(controller, enabled.error().message());
    }
    remove_stale_sessions(path);
    return parent;
}

Result<> CgroupParent::enable_controllers(const SessionLimits& limits) {
    const auto there = controllers_of(own_path_);
    for (const Controller& controller : controllers_for(limits)) {
        const bool has = std::find(there.begin(), there.end(), controller.name) != there.end();
        if (!has) {
            return cannot_limit(
                controller,
                fmt::format("cgroup v2 has no controller '{}' in {}; it may be used by cgroup v1, "
                            "or not be delegated (systemd: Delegate=yes)",
                            controller.name, own_path_));
        }
    }
    if (limits.any() && !is_root_cgroup(own_path_)) GPR_CHECK(move_to_leaf());
    for (const Controller& controller : controllers_for(limits)) {
        if (!is_root_cgroup(own_path_) && has_processes(own_path_)) {
            return cannot_limit(controller,
                                fmt::format("other processes are in {}; start the acceptor in a "
                                            "cgroup of its own, as systemd does",
                                            own_path_));
        }
        const auto enabled =
            write_file(own_path_ + "/cgroup.subtree_control", fmt::format("+{}", controller.name));
        if (!enabled) return cannot_limit(controller, enabled.error().message());
        enabled_ += fmt::format("{}-{}", enabled_.empty() ? "" : " ", controller.name);
    }
    return {};
}

Result<> CgroupParent::move_to_leaf() {
    const auto path = fmt::format("{}/{}", own_path_, leaf_name);
    if (mkdir(path.c_str(), 0755) == -1 && errno != EEXIST) return fail(errno, "make " + path);
    leaf_ = path;
    return write_file(path + "/cgroup.procs", std::to_string(getpid()));
}

// Undoes what create() has changed for the limits.
void CgroupParent::move_back() const {
    if (!enabled_.empty()) {
        static_cast<void>(write_file(own_path_ + "/cgroup.subtree_control", enabled_));
    }
    static_cast<void>(write_file(own_path_ + "/cgroup.procs", std::to_string(getpid())));
    rmdir(leaf_.c_str());
}

CgroupParent::CgroupParent(CgroupParent&& other) noexcept
    : path_(std::move(other.path_)),
      own_path_(std::move(other.own_path_)),
      mount_point_(std::move(other.mount_point_)),
      leaf_(std::exchange(other.leaf_, {})),
      enabled_(std::move(other.enabled_)),
      creator_(std::exchange(other.creator_, -1)) {}

CgroupParent::~CgroupParent() {
    if (creator_ != getpid()) return;
    if (!path_.empty()) rmdir(path_.c_str());
    if (!leaf_.empty()) move_back();
}

CgroupParent CgroupParent::of_daemon(std::string path, std::string mount_point) {
    CgroupParent parent;
    parent.path_ = std::move(path);
    parent.mount_point_ = std::move(mount_point);
    return parent;
}

Result<SessionCgroup> CgroupParent::create_session(const SessionLimits& limits) const {
    SessionCgroup session;
    const auto path = session_path(path_, getpid());
    // Left by an earlier worker with this pid.
    if (mkdir(path.c_str(), 0755) == -1 && errno == EEXIST) remove_cgroup(path);
    if (mkdir(path.c_str(), 0755) == -1 && errno != EEXIST) return fail(errno, "make " + path);
    session.path_ = path;
    session.directory_ = Fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!session.directory_) return fail(errno, "open " + path);
    for (const LimitFile& limit : limit_files(limits, device_regions(mount_point_))) {
        const auto written = write_file(fmt::format("{}/{}", path, limit.file), limit.text);
        if (!written && !(limit.may_lack && written.error().code == ENOENT)) {
            return tl::make_unexpected(written.error());
        }
    }
    return session;
}

bool CgroupParent::try_remove_session(pid_t worker) const {
    return try_remove_cgroup(session_path(path_, worker));
}

SessionCgroup::~SessionCgroup() {
    if (directory_) remove_cgroup(path_);
}

}  // namespace gpr
