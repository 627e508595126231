// The part of `gpr setup` that reads the state of the host and changes it.
#include <fcntl.h>
#include <grp.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/fd.h"
#include "base/userfaultfd.h"
#include "tools/setup_plan.h"

namespace gpr {
namespace {

namespace fs = std::filesystem;

constexpr unsigned misc_major = 10;

bool any_exists(const std::string& root, std::initializer_list<const char*> paths) {
    return std::any_of(paths.begin(), paths.end(),
                       [&](const char* path) { return access((root + path).c_str(), F_OK) == 0; });
}

std::string text_of(const std::string& path) {
    std::ifstream stream(path);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

std::optional<std::string> switch_value(const std::string& root, std::string name) {
    std::replace(name.begin(), name.end(), '.', '/');
    std::ifstream stream(root + "/proc/sys/" + name);
    std::string value;
    if (!std::getline(stream, value)) return std::nullopt;
    return value;
}

// The minor number that the kernel gave the misc device, for a host without its device node.
std::optional<unsigned> minor_from_misc(const std::string& root) {
    std::ifstream misc(root + "/proc/misc");
    unsigned number = 0;
    std::string name;
    while (misc >> number >> name) {
        if (name == "userfaultfd") return number;
    }
    return std::nullopt;
}

void read_device(const std::string& root, HostState& state) {
    struct stat status {};
    state.has_device = stat((root + userfaultfd_device).c_str(), &status) == 0;
    if (!state.has_device) {
        state.device_minor = minor_from_misc(root);
        return;
    }
    state.device_mode = status.st_mode;
    const group* owner = getgrgid(status.st_gid);
    state.device_group = owner != nullptr ? owner->gr_name : "";
}

Result<> run_words(const std::vector<std::string>& words) {
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    pid_t child = -1;
    const int refusal = posix_spawnp(&child, argv[0], nullptr, nullptr, argv.data(), environ);
    if (refusal != 0) return fail(refusal, fmt::format("cannot run {}", words.front()));
    int status = 0;
    GPR_CHECK(from_libc(waitpid(child, &status, 0), "cannot wait for a command"));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        return fail(fmt::format("{} failed", words.front()));
    }
    return {};
}

Result<> write_text(const std::string& path, const std::string& text, int flags) {
    const Fd file(open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0644));
    if (!file) return fail(errno, fmt::format("cannot write {}", path));
    const auto written = write(file.get(), text.data(), text.size());
    if (written != static_cast<ssize_t>(text.size())) {
        return fail(written == -1 ? errno : EIO, fmt::format("cannot write {}", path));
    }
    return {};
}

Result<> set_owner(const std::string& path, const std::string& group_name) {
    const group* owner = getgrnam(group_name.c_str());
    if (owner == nullptr) return fail(fmt::format("there is no group '{}'", group_name));
    const std::string what = fmt::format("cannot change the owner and mode of {}", path);
    GPR_CHECK(from_libc(chown(path.c_str(), 0, owner->gr_gid), what.c_str()));
    GPR_CHECK(from_libc(chmod(path.c_str(), granted_device_mode), what.c_str()));
    return {};
}

}  // namespace

HostState HostState::read(const std::string& root, const SetupWishes& wishes) {
    HostState state;
    if (const group* wanted = getgrnam(wishes.group.c_str())) {
        state.group_exists = true;
        for (char** member = wanted->gr_mem; *member != nullptr; ++member) {
            state.members.emplace_back(*member);
        }
    }
    read_device(root, state);
    state.has_udev = any_exists(
        root, {"/usr/bin/udevadm", "/usr/sbin/udevadm", "/bin/udevadm", "/sbin/udevadm"});
    state.has_tmpfiles = any_exists(root, {"/usr/bin/systemd-tmpfiles", "/bin/systemd-tmpfiles"});
    state.rule_text = text_of(root + (state.has_udev ? udev_rule_path : tmpfiles_path));
    state.sysctl_text = text_of(root + sysctl_path);
    for (const std::string& name : watched_switches()) {
        state.switches.push_back({name, switch_value(root, name)});
    }
    return state;
}

Result<> apply_step(const SetupStep& step, const std::string& root) {
    const std::string path = root + step.path;
    switch (step.kind) {
        case SetupStep::Kind::run: return run_words(step.words);
        case SetupStep::Kind::write_file: {
            std::error_code error;
            fs::create_directories(fs::path(path).parent_path(), error);
            if (error)
                return fail(error.value(), fmt::format("cannot make the folder of {}", path));
            return write_text(path, step.text, O_CREAT | O_TRUNC);
        }
        case SetupStep::Kind::make_device: {
            const auto number = makedev(misc_major, step.device_minor);
            GPR_CHECK(from_libc(mknod(path.c_str(), S_IFCHR | 0600, number),
                                "cannot make /dev/userfaultfd"));
            return {};
        }
        case SetupStep::Kind::set_owner: return set_owner(path, step.text);
        case SetupStep::Kind::set_switch: return write_text(path, step.text, 0);
    }
    return {};
}

}  // namespace gpr
