// Walks paths as the kernel does and has each step watched, so that it is known until when the same
// path leads to the same place. What has been walked is remembered.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "monitor/home/local_mounts.h"
#include "monitor/home/watched_names.h"

namespace gpr::home {

class PathWalks {
public:
    explicit PathWalks(WatchedNames& names) : names_(names) {}

    // Where a path begins: its text for this host's kernel, and what tells it from other places
    // that have that text at another time.
    struct Start {
        std::string path;  // "": the root directory
        uint32_t id = 0;
    };
    // The way to a directory.
    struct Way {
        std::vector<uint32_t> ids;  // it holds as long as these
        int error = 0;              // ENOENT, ENOTDIR: there is no such directory; -1: unknown
        int watch = -1;             // of the directory, if there is one
    };
    // path: of parts(), and a slash before each.
    Way to_directory(const Start& start, const std::string& path, int links = 0);
    // To a start that is not the root directory, from there.
    Way to_start(const Start& start);
    void forget() {
        known_.clear();
        mounts.forget();
    }

    LocalMounts mounts;

    // What a path consists of, without the parts that are empty or ".".
    static std::vector<std::string_view> parts(std::string_view path);
    static std::string join(const std::vector<std::string_view>& parts);
    // With O_PATH, and not through a link at its end.
    static Fd open(const Start& start, const std::string& path, int flags = 0);
    // One inode may be in several places.
    struct Place {
        uint64_t device = 0, inode = 0, mount = 0;
        auto operator<=>(const Place&) const = default;
    };
    static std::optional<Place> place_of(int fd);

private:
    Way walk(const Start& start, const std::string& path, int links);
    Way follow(const Start& start, const std::string& parent, const std::string& target, Way base,
               int links);

    WatchedNames& names_;
    std::unordered_map<std::string, Way> known_;
};

}  // namespace gpr::home
