#include "monitor/control/control_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

namespace gpr {

namespace {

constexpr const char* folder_of_root = "/run/gpr";
constexpr std::string_view suffix = ".session";
constexpr mode_t rights_of_others = 077;

namespace fs = std::filesystem;

bool is_folder_of(const std::string& path, uid_t owner) {
    struct stat about {};
    return stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == owner;
}

// The preferred one first.
std::vector<std::string> paths_of(uid_t user, const char* runtime) {
    std::vector<std::string> paths;
    if (user == 0) {
        paths.emplace_back(folder_of_root);
    } else {
        if (runtime && *runtime == '/' && is_folder_of(runtime, user)) {
            paths.push_back(fmt::format("{}/gpr", runtime));
        }
        const std::string usual = fmt::format("/run/user/{}", user);
        if (is_folder_of(usual, user)) paths.push_back(usual + "/gpr");
    }
    paths.push_back(fmt::format("/tmp/gpr-{}", user));
    return paths;
}

std::optional<uid_t> number_in(const std::string& text) {
    if (text.empty() || text.size() > 10) return std::nullopt;
    if (text.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
    return static_cast<uid_t>(std::strtoull(text.c_str(), nullptr, 10));
}

// Adds the numbers that follow the prefix in names of a folder.
void add_users(const char* folder, std::string_view prefix, std::set<uid_t>& users) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename();
        if (!name.starts_with(prefix)) continue;
        if (const auto user = number_in(name.substr(prefix.size()))) users.insert(*user);
    }
}

}  // namespace

// Works on the descriptor from here on, so the folder cannot be replaced meanwhile.
Result<ControlFolder> ControlFolder::open(const std::string& path, uid_t owner) {
    Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return fail(errno, fmt::format("cannot open the folder {}", path));
    struct stat about {};
    if (fstat(fd.get(), &about) != 0) return fail(errno, fmt::format("cannot look at {}", path));
    if (about.st_uid != owner) {
        return fail(fmt::format("{} belongs to user {}, not to user {}; remove it", path,
                                about.st_uid, owner));
    }
    if (about.st_mode & rights_of_others) {
        return fail(
            fmt::format("others can enter {}; remove it, or run 'chmod 700 {}'", path, path));
    }
    return ControlFolder(std::move(fd), path, owner);
}

Result<ControlFolder> ControlFolder::make() {
    const uid_t user = geteuid();
    std::optional<Error> first;
    for (const std::string& path : paths_of(user, getenv("XDG_RUNTIME_DIR"))) {
        const bool is_made = mkdir(path.c_str(), S_IRWXU) == 0 || errno == EEXIST;
        auto folder = is_made
                          ? open(path, user)
                          : Result<ControlFolder>(fail(errno, "cannot make the folder " + path));
        if (folder) return folder;
        if (!first) first = folder.error();
    }
    return tl::make_unexpected(*first);
}

std::vector<ControlFolder> ControlFolder::of_this_user() {
    std::vector<ControlFolder> folders;
    std::set<std::string> seen;
    for (const std::string& path : paths_of(geteuid(), getenv("XDG_RUNTIME_DIR"))) {
        if (!seen.insert(path).second) continue;
        if (auto folder = open(path, geteuid())) folders.push_back(std::move(*folder));
    }
    return folders;
}

std::vector<ControlFolder> ControlFolder::of_everybody() {
    std::vector<ControlFolder> folders;
    std::set<uid_t> users{0};
    add_users("/run/user", "", users);
    add_users("/tmp", "gpr-", users);
    for (const uid_t user : users) {
        if (user == geteuid()) {
            for (auto& folder : of_this_user()) folders.push_back(std::move(folder));
            continue;
        }
        for (const std::string& path : paths_of(user, nullptr)) {
            if (auto folder = open(path, user)) folders.push_back(std::move(*folder));
        }
    }
    return folders;
}

std::string ControlFolder::new_name(pid_t pid) {
    uint32_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number) {
        number = static_cast<uint32_t>(getpid());
    }
    return fmt::format("{}-{:08x}{}", pid, number, suffix);
}

pid_t ControlFolder::pid_of(const std::string& name) {
    if (!name.ends_with(suffix)) return 0;
    const size_t digits = name.find_first_not_of("0123456789");
    if (digits == 0 || digits > 9 || name[digits] != '-') return 0;
    return std::atoi(name.c_str());
}

std::vector<std::string> ControlFolder::names() const {
    std::vector<std::string> names;
    // A new descriptor, because reading a directory moves its offset.
    const int fd = openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(fdopendir(fd), closedir);
    if (!folder) return names;
    while (const dirent* entry = readdir(folder.get())) {
        if (pid_of(entry->d_name) != 0) names.emplace_back(entry->d_name);
    }
    return names;
}

sockaddr_un ControlFolder::address(const std::string& name) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = fmt::format("/proc/self/fd/{}/{}", fd_.get(), name);
    GPR_ASSERT(path.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

void ControlFolder::remove(const std::string& name) const { unlinkat(fd_.get(), name.c_str(), 0); }

Result<> ControlFolder::rename(const std::string& from, const std::string& to) const {
    if (renameat(fd_.get(), from.c_str(), fd_.get(), to.c_str()) == 0) return {};
    return fail(errno, fmt::format("cannot rename {}/{}", path_, from));
}

}  // namespace gpr
