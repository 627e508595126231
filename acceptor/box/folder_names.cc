#include "acceptor/box/folder_names.h"

#include <dirent.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <string_view>

namespace gpr {
namespace {

// Of two changes within this time some file systems note one time.
constexpr time_t coarsest_time_s = 2;

bool is_same(const timespec& a, const timespec& b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool is_unchanged(const struct stat& a, const struct stat& b) {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino && is_same(a.st_mtim, b.st_mtim) &&
           is_same(a.st_ctim, b.st_ctim);
}

bool was_changed_long_ago(const struct stat& folder) {
    const time_t last = std::max(folder.st_mtim.tv_sec, folder.st_ctim.tv_sec);
    return last + coarsest_time_s < time(nullptr);
}

}  // namespace

const std::vector<std::string>& FolderNames::of(const std::string& folder) {
    Known& known = known_[folder];
    struct stat now {};
    const bool is_there = stat(folder.c_str(), &now) == 0;
    if (is_there && known.is_settled && is_unchanged(now, known.as_read)) return known.names;
    known = {};
    const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder.c_str()), closedir);
    if (!open || fstat(dirfd(open.get()), &known.as_read) != 0) return known.names;
    known.is_settled = was_changed_long_ago(known.as_read);
    while (const dirent* entry = readdir(open.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") known.names.emplace_back(name);
    }
    return known.names;
}

}  // namespace gpr
