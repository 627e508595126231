#include "monitor/home/path_walks.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace gpr::home {

namespace {

constexpr size_t most_known = 20000;
constexpr int most_links = 20;  // half of what the kernel follows

PathWalks::Way unknown() { return {{}, -1, -1}; }

std::string kernel_path(const PathWalks::Start& start, const std::string& path) {
    const std::string whole = start.path + path;
    return whole.empty() ? "/" : whole;
}

std::string target_of(int link) {
    std::array<char, PATH_MAX> text{};
    const ssize_t size = readlinkat(link, "", text.data(), text.size());
    return size > 0 && size < PATH_MAX ? std::string(text.data(), static_cast<size_t>(size))
                                       : std::string();
}

}  // namespace

std::optional<PathWalks::Place> PathWalks::place_of(int fd) {
    constexpr unsigned wanted = STATX_INO | STATX_MNT_ID;
    struct statx of {};
    if (fd < 0 || statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, wanted, &of) != 0) return {};
    return Place{makedev(of.stx_dev_major, of.stx_dev_minor), of.stx_ino, of.stx_mnt_id};
}

std::vector<std::string_view> PathWalks::parts(std::string_view path) {
    std::vector<std::string_view> found;
    while (!path.empty()) {
        const size_t end = std::min(path.find('/'), path.size());
        const std::string_view part = path.substr(0, end);
        if (!part.empty() && part != ".") found.push_back(part);
        path.remove_prefix(std::min(end + 1, path.size()));
    }
    return found;
}

std::string PathWalks::join(const std::vector<std::string_view>& parts) {
    std::string path;
    for (const std::string_view part : parts) path.append("/").append(part);
    return path;
}

Fd PathWalks::open(const Start& start, const std::string& path, int flags) {
    return Fd(::open(kernel_path(start, path).c_str(), O_PATH | O_CLOEXEC | flags));
}

PathWalks::Way PathWalks::to_directory(const Start& start, const std::string& path, int links) {
    const std::string key = std::to_string(start.id) + path;
    auto it = known_.find(key);
    if (it != known_.end()) {
        auto holds = [this](uint32_t id) { return names_.holds(id); };
        if (std::ranges::all_of(it->second.ids, holds)) return it->second;
        known_.erase(it);
    }
    Way way = walk(start, path, links);
    if (way.error < 0) return way;
    std::ranges::sort(way.ids);
    const auto twice = std::ranges::unique(way.ids);
    way.ids.erase(twice.begin(), twice.end());
    if (known_.size() >= most_known) known_.clear();
    known_[key] = way;
    return way;
}

// A directory is watched before anything is looked up in it, so that a change between the two is
// not missed.
PathWalks::Way PathWalks::walk(const Start& start, const std::string& path, int links) {
    Way way;
    std::string parent, name;
    if (!path.empty()) {
        const size_t last = path.find_last_of('/');
        parent = path.substr(0, last);
        name = path.substr(last + 1);
        way = to_directory(start, parent, links);
        if (way.error != 0) return way;
    }
    if (!name.empty() && name != "..") way.ids.push_back(names_.id_of(way.watch, name));
    way.watch = -1;
    // The starting directory may be named by a link of /proc.
    const Fd file = open(start, path, name.empty() ? O_DIRECTORY : O_NOFOLLOW);
    if (!file) {
        if (errno != ENOENT) return unknown();
        way.error = ENOENT;
        return way;
    }
    const auto seen = mounts.file(file.get());
    if (!seen) return unknown();
    if (S_ISLNK(seen->mode)) {
        // fs.protected_symlinks: whether a link is followed there depends on its owner.
        const Fd directory = open(start, parent, O_DIRECTORY);
        const auto above = directory ? mounts.file(directory.get()) : std::nullopt;
        if (links >= most_links || !above || (above->mode & S_ISVTX)) return unknown();
        const std::string target = target_of(file.get());
        return target.empty() ? unknown() : follow(start, parent, target, std::move(way), links);
    }
    if (!S_ISDIR(seen->mode)) {
        way.error = ENOTDIR;
        return way;
    }
    way.watch = names_.watch(file.get());
    if (way.watch < 0) return unknown();
    way.ids.push_back(names_.id_of(way.watch, WatchedNames::itself));
    return way;
}

PathWalks::Way PathWalks::follow(const Start& start, const std::string& parent,
                                 const std::string& target, Way base, int links) {
    const bool from_root = target.front() == '/';
    const std::string path = (from_root ? std::string() : parent) + join(parts(target));
    Way rest = to_directory(from_root ? Start{} : start, path, links + 1);
    base.ids.insert(base.ids.end(), rest.ids.begin(), rest.ids.end());
    base.error = rest.error;
    base.watch = rest.watch;
    return base;
}

PathWalks::Way PathWalks::to_start(const Start& start) {
    std::array<char, PATH_MAX> text{};
    const ssize_t size = readlink(start.path.c_str(), text.data(), text.size());
    if (size <= 0 || size == PATH_MAX || text[0] != '/') return unknown();
    const std::string path = join(parts({text.data(), static_cast<size_t>(size)}));
    Way way = to_directory({}, path);
    if (way.error != 0) return unknown();
    const Fd named = open({}, path, O_DIRECTORY), itself = open(start, "", O_DIRECTORY);
    const auto place = place_of(named.get());
    return place && place == place_of(itself.get()) ? way : unknown();
}

}  // namespace gpr::home
