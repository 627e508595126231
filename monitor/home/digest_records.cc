#include "monitor/home/digest_records.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>

#include "base/fd.h"
#include "base/file_text.h"

namespace gpr::home {

namespace {

namespace fs = std::filesystem;

// Of the text file; with more it is written anew, without those that have been replaced.
constexpr size_t most_lines = 16'384;
constexpr int64_t second_ns = 1'000'000'000;
constexpr int64_t settling_ns = 2 * second_ns;  // the coarsest time of any file system

int64_t in_ns(const timespec& time) { return time.tv_sec * second_ns + time.tv_nsec; }

std::string line_of(const FileVersion& file, const ContentDigest& digest) {
    return fmt::format("{} {} {} {} {} {}\n", file.device, file.inode, file.size, file.modified_ns,
                       file.changed_ns, hex(digest));
}

// Nobody else may write what we believe.
std::string text_of_own(const std::string& path) {
    const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat about {};
    const bool ours = file && fstat(file.get(), &about) == 0 && S_ISREG(about.st_mode) &&
                      about.st_uid == geteuid() && !(about.st_mode & (S_IWGRP | S_IWOTH));
    return ours ? text_of(fmt::format("/proc/self/fd/{}", file.get())) : std::string();
}

// Of the folder, or of that in which it would be made. With sudo the home folder may be another
// user's, who would find files of root there.
bool is_own(fs::path folder) {
    struct stat about {};
    while (stat(folder.c_str(), &about) != 0 && folder.has_relative_path()) {
        folder = folder.parent_path();
    }
    return about.st_uid == geteuid();
}

}  // namespace

FileVersion version_of(const struct stat& about) {
    return {about.st_dev, about.st_ino, static_cast<uint64_t>(about.st_size), in_ns(about.st_mtim),
            in_ns(about.st_ctim)};
}

bool has_settled(const FileVersion& file, int64_t now_ns) {
    return std::max(file.modified_ns, file.changed_ns) < now_ns - settling_ns;
}

std::optional<ContentDigest> DigestRecords::find(const FileVersion& file) {
    if (!loaded_) load();
    const auto known = known_.find(file);
    return known == known_.end() ? std::nullopt : std::optional(known->second);
}

void DigestRecords::load() {
    loaded_ = true;
    if (path_.empty()) return;
    std::istringstream lines(text_of_own(path_));
    for (std::string line; std::getline(lines, line); lines_++) {
        std::istringstream words(line);
        FileVersion file;
        std::string digest;
        words >> file.device >> file.inode >> file.size >> file.modified_ns >> file.changed_ns >>
            digest;
        if (const auto read = digest_of_hex(digest); words && read) known_[file] = *read;
    }
}

void DigestRecords::add(const FileVersion& file, const ContentDigest& digest) {
    if (!loaded_) load();
    known_[file] = digest;
    if (path_.empty()) return;
    std::error_code ignored;
    fs::create_directories(fs::path(path_).parent_path(), ignored);
    if (++lines_ > most_lines) return write_anew();
    // Lines of several sessions do not mix: each is written at once.
    const Fd to(open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                     S_IRUSR | S_IWUSR));
    const std::string line = line_of(file, digest);
    if (write(to.get(), line.data(), line.size()) < 0) path_.clear();
}

// Of each inode the latest, and half of what fits if there are too many.
void DigestRecords::write_anew() {
    std::map<std::pair<uint64_t, uint64_t>, std::pair<FileVersion, ContentDigest>> latest;
    for (const auto& [file, digest] : known_) {
        auto& kept = latest[{file.device, file.inode}];
        if (file.changed_ns >= kept.first.changed_ns) kept = {file, digest};
    }
    const std::string next = fmt::format("{}.{}", path_, getpid());
    const Fd to(open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!to) return path_.clear();
    std::string text;
    lines_ = 0;
    for (const auto& [inode, kept] : latest) {
        if (++lines_ > most_lines / 2) break;
        text += line_of(kept.first, kept.second);
    }
    const bool whole =
        write(to.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (!whole || rename(next.c_str(), path_.c_str()) != 0) unlink(next.c_str());
}

std::string default_digest_records() {
    std::string folder;
    const char* cache = getenv("XDG_CACHE_HOME");
    const char* home = getenv("HOME");
    if (cache != nullptr && *cache == '/') {
        folder = cache;
    } else if (home != nullptr && *home == '/') {
        folder = std::string(home) + "/.cache";
    }
    return !folder.empty() && is_own(folder) ? folder + "/gpr/digests" : std::string();
}

}  // namespace gpr::home
