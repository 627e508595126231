#include "acceptor/cache/content_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/log.h"

namespace gpr {

namespace fs = std::filesystem;

namespace {

constexpr const char* unfinished = ".part";
constexpr const char* use = ".used";  // an empty file as long as the sum of what was used
constexpr const char* of_token = "token-";
constexpr size_t check_step = 256u << 10;  // bytes
constexpr uint64_t least_bytes = 4096;     // of a file, its name and inode included
// Of the file system, which others need, too.
constexpr uint64_t free_share = 10;

struct Kept {
    std::shared_ptr<Fd> folder;
    std::string name;
    uint64_t bytes = 0;
    timespec used{};
};

// Whatever else is there is somebody else's.
bool is_content(std::string_view name) {
    for (const std::string_view suffix : {unfinished, use}) {
        if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
    }
    return digest_of_hex(name).has_value();
}

Fd open_folder(int parent, const char* name) {
    return Fd(openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

std::vector<std::string> names_in(const Fd& folder) {
    std::vector<std::string> names;
    std::error_code error;
    const std::string link = fmt::format("/proc/self/fd/{}", folder.get());
    for (fs::directory_iterator at(link, error), end; !error && at != end; at.increment(error)) {
        names.push_back(at->path().filename().string());
    }
    return names;
}

void look_through(const std::shared_ptr<Fd>& folder, std::vector<Kept>& found) {
    for (const std::string& name : names_in(*folder)) {
        struct stat about {};
        if (!is_content(name) ||
            fstatat(folder->get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(about.st_mode)) {
            continue;
        }
        const auto bytes = static_cast<uint64_t>(about.st_blocks) * 512;
        found.push_back({folder, name, std::max(bytes, least_bytes), about.st_mtim});
    }
}

// Whether a session is receiving it.
bool is_coming(const Kept& content) {
    if (!content.name.ends_with(unfinished)) return false;
    const Fd file(
        openat(content.folder->get(), content.name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    return file && flock(file.get(), LOCK_EX | LOCK_NB) != 0;
}

uint64_t sum_of(const std::vector<Kept>& contents) {
    uint64_t sum = 0;
    for (const Kept& each : contents) sum += each.bytes;
    return sum;
}

// Drops the oldest until there are no more than `most` bytes.
void drop_oldest(std::vector<Kept> contents, uint64_t most) {
    uint64_t sum = sum_of(contents);
    std::ranges::sort(contents, [](const Kept& a, const Kept& b) {
        return std::pair{a.used.tv_sec, a.used.tv_nsec} < std::pair{b.used.tv_sec, b.used.tv_nsec};
    });
    for (const Kept& each : contents) {
        if (sum <= most) return;
        if (is_coming(each)) continue;
        if (unlinkat(each.folder->get(), each.name.c_str(), 0) == 0) {
            sum -= std::min(sum, each.bytes);
        }
    }
}

}  // namespace

bool IncomingContent::append(std::span<const std::byte> bytes) {
    if (bytes.size() > missing()) return false;
    const ssize_t put =
        pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(received_));
    if (put != static_cast<ssize_t>(bytes.size())) return false;
    received_ += bytes.size();
    return true;
}

IncomingContent::Verdict IncomingContent::check_some() {
    std::vector<std::byte> piece(std::min<uint64_t>(check_step, size_ - checked_));
    const ssize_t got =
        pread(file_.get(), piece.data(), piece.size(), static_cast<off_t>(checked_));
    const bool read = got == static_cast<ssize_t>(piece.size());
    hash_.add(piece);
    checked_ += piece.size();
    if (read && checked_ < size_) return Verdict::unfinished;
    if (read && hash_.finish() == digest_) return Verdict::right;
    drop();
    unlinkat(folder_.get(), (hex(digest_) + use).c_str(), 0);
    return Verdict::wrong;
}

// The name of what comes may be another file's by now: that was dropped, and begun anew.
void IncomingContent::drop() const {
    struct stat ours {
    }, named{};
    const std::string name = hex(digest_) + unfinished;
    const bool same = fstat(file_.get(), &ours) == 0 &&
                      fstatat(folder_.get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
                      ours.st_ino == named.st_ino;
    if (same) unlinkat(folder_.get(), name.c_str(), 0);
}

bool IncomingContent::keep() {
    const std::string link = fmt::format("/proc/self/fd/{}", file_.get());
    // Nobody writes to it any more.
    const bool kept =
        fchmod(file_.get(), S_IRUSR) == 0 &&
        linkat(AT_FDCWD, link.c_str(), folder_.get(), hex(digest_).c_str(), AT_SYMLINK_FOLLOW) == 0;
    drop();
    if (kept) unlinkat(folder_.get(), (hex(digest_) + use).c_str(), 0);
    return kept;
}

bool ContentCache::has(const ContentDigest& digest) const {
    return faccessat(folder_.get(), hex(digest).c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void ContentCache::note_use(const ContentDigest& digest, uint64_t bytes) const {
    if (has(digest)) return;
    const Fd file(openat(folder_.get(), (hex(digest) + use).c_str(),
                         O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    const uint64_t sum = used(digest) + bytes;
    if (file && ftruncate(file.get(), static_cast<off_t>(sum)) != 0) {
        spdlog::debug("the use of content {} cannot be noted", hex(digest).substr(0, 12));
    }
}

uint64_t ContentCache::used(const ContentDigest& digest) const {
    struct stat about {};
    const std::string name = hex(digest) + use;
    const bool known = fstatat(folder_.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0;
    return known ? static_cast<uint64_t>(about.st_size) : 0;
}

Fd ContentCache::find(const ContentDigest& digest) const {
    Fd file(openat(folder_.get(), hex(digest).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (file && used_.insert(digest).second) futimens(file.get(), nullptr);
    return file;
}

std::unique_ptr<IncomingContent> ContentCache::receive(const ContentDigest& digest, uint64_t size) {
    if (size == 0 || size > most_ || has(digest)) return nullptr;
    std::vector<Kept> others;
    look_through(std::make_shared<Fd>(open_folder(folder_.get(), ".")), others);
    const std::string name = hex(digest) + unfinished;
    std::erase_if(others, [&](const Kept& each) { return each.name == name; });
    drop_oldest(std::move(others), most_ - size);
    struct statvfs disk {};
    const bool known = fstatvfs(folder_.get(), &disk) == 0;
    const uint64_t spare = known ? disk.f_bavail * disk.f_frsize : 0;
    if (!known || spare < size || spare - size < disk.f_blocks * disk.f_frsize / free_share) {
        return nullptr;
    }
    Fd file(openat(folder_.get(), name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                   S_IRUSR | S_IWUSR));
    struct stat about {};
    const bool ours = file && flock(file.get(), LOCK_EX | LOCK_NB) == 0 &&
                      fstat(file.get(), &about) == 0 && about.st_nlink == 1 && !has(digest);
    if (!ours) return nullptr;
    auto received = static_cast<uint64_t>(about.st_size);
    if (received > size) {
        if (ftruncate(file.get(), 0) != 0) return nullptr;
        received = 0;
    }
    return std::make_unique<IncomingContent>(folder_, std::move(file), digest, size, received);
}

Result<> prepare_content_folder(const std::string& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    const Fd opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat about {};
    struct statvfs disk {};
    if (!opened || fstat(opened.get(), &about) != 0 || fstatvfs(opened.get(), &disk) != 0) {
        return fail(errno, fmt::format("cannot use the folder {} for contents", folder));
    }
    if (about.st_uid != geteuid() || (about.st_mode & (S_IWGRP | S_IWOTH))) {
        return fail(fmt::format("others can write to {}: run 'chown root {} && chmod 700 {}'",
                                folder, folder, folder));
    }
    if (disk.f_flag & (ST_NOEXEC | ST_RDONLY)) {
        return fail(fmt::format("code cannot be kept in {}: its file system is mounted {}", folder,
                                disk.f_flag & ST_NOEXEC ? "noexec" : "read-only"));
    }
    if (faccessat(opened.get(), ".", W_OK, AT_EACCESS) != 0) {
        return fail(errno, fmt::format("cannot use the folder {} for contents", folder));
    }
    return {};
}

Result<Fd> open_content_folder(const std::string& folder, const std::string& token_id) {
    const Fd all(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const std::string name = of_token + token_id;  // a token may be called ".."
    mkdirat(all.get(), name.c_str(), S_IRWXU);
    Fd opened(openat(all.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!opened) return fail(errno, fmt::format("cannot use the folder {}/{}", folder, name));
    return opened;
}

void prune_contents(const std::string& folder, uint64_t most) {
    const Fd all = open_folder(AT_FDCWD, folder.c_str());
    if (!all) return;
    std::vector<Kept> contents;
    for (const std::string& name : names_in(all)) {
        if (!name.starts_with(of_token)) continue;
        auto its = std::make_shared<Fd>(open_folder(all.get(), name.c_str()));
        if (*its) look_through(its, contents);
    }
    drop_oldest(std::move(contents), most);
}

}  // namespace gpr
