#include "monitor/home/local_mounts.h"

#include <fcntl.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace gpr::home {

namespace {

// Not overlayfs, whose lower layers may change without an event.
constexpr std::string_view local_types[] = {"ext2",  "ext3",  "ext4",     "xfs",
                                            "btrfs", "tmpfs", "devtmpfs", "f2fs"};

bool has_word(const std::string& options, std::string_view word) {
    std::istringstream in(options);
    for (std::string one; std::getline(in, one, ',');) {
        if (one == word) return true;
    }
    return false;
}

// With relatime a status has another time of last access a day after that. Acceptors forget
// answers after an hour.
constexpr time_t longest_atime = 22 * 3600;

}  // namespace

// proc_pid_mountinfo(5): number, parent, device, root, place, options, tags, "-", type, ...
void LocalMounts::read() {
    std::ifstream in("/proc/self/mountinfo");
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        uint64_t number = 0;
        std::string parent, device, root, place, options, word, type;
        words >> number >> parent >> device >> root >> place >> options;
        while (words >> word && word != "-") {
        }
        words >> type;
        if (std::ranges::find(local_types, type) == std::end(local_types)) continue;
        known_[number] = {0, has_word(options, "noatime"), has_word(options, "nodiratime"),
                          has_word(options, "relatime"), type == "tmpfs" || type == "devtmpfs"};
    }
}

std::optional<LocalMounts::File> LocalMounts::file(int fd) {
    if (known_.empty()) read();
    struct statx of {};
    constexpr int without_asking = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
    constexpr unsigned wanted = STATX_TYPE | STATX_MODE | STATX_MNT_ID;
    if (statx(fd, "", without_asking, wanted, &of) != 0) return std::nullopt;
    auto it = known_.find(of.stx_mnt_id);
    if (it == known_.end() || !(of.stx_mask & STATX_MNT_ID)) return std::nullopt;
    File found = it->second;
    found.mode = of.stx_mode;
    return found;
}

bool is_settled(const LocalMounts::File& file, const struct stat& status) {
    if (file.keeps_atime || (file.keeps_atime_dir && S_ISDIR(file.mode))) return true;
    if (!file.relative_atime) return false;
    auto later = [](const timespec& a, const timespec& b) {
        return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
    };
    return later(status.st_atim, status.st_mtim) && later(status.st_atim, status.st_ctim) &&
           time(nullptr) - status.st_atim.tv_sec < longest_atime;
}

}  // namespace gpr::home
