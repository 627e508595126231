#include "base/output_place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <optional>

namespace gpr {
namespace {

namespace fs = std::filesystem;

// Opening such a name would truncate a file, and is impossible for a socket.
std::optional<int> descriptor_of(std::string_view name) {
    if (name == "-" || name == "/dev/stdout") return STDOUT_FILENO;
    if (name == "/dev/stderr") return STDERR_FILENO;
    for (const std::string_view prefix : {"/dev/fd/", "/proc/self/fd/"}) {
        if (!name.starts_with(prefix)) continue;
        const std::string_view digits = name.substr(prefix.size());
        int number = -1;
        const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
        if (read.ec == std::errc{} && read.ptr == digits.data() + digits.size()) return number;
    }
    return std::nullopt;
}

// Resolves links, also if the file does not exist yet, and for links whose targets do not exist
// yet.
Result<std::string> behind_links(const std::string& name) {
    constexpr int most_links = 40;
    fs::path path = fs::absolute(name);
    std::error_code none;
    for (int i = 0; i < most_links && fs::is_symlink(path, none); ++i) {
        path = path.parent_path() / fs::read_symlink(path, none);
    }
    std::error_code missing;
    const fs::path folder = fs::canonical(path.parent_path(), missing);
    if (missing) return fail(missing.value(), fmt::format("cannot write {}", name));
    return (folder / path.filename()).string();
}

bool write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(fd, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        text.remove_prefix(static_cast<size_t>(written));
    }
    return true;
}

Failure cannot_write(const std::string& path) {
    return fail(errno, fmt::format("cannot write {}", path));
}

Result<> write_in_place(const std::string& path, std::string_view text) {
    const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!file || !write_all(file.get(), text)) return cannot_write(path);
    return {};
}

}  // namespace

Result<OutputPlace> OutputPlace::find(const std::string& name) {
    OutputPlace place;
    if (const auto number = descriptor_of(name)) {
        place.stream_ = Fd(fcntl(*number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
        const int flags = place.stream_ ? fcntl(*number, F_GETFL) : -1;
        if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY) errno = EBADF;
        if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) return cannot_write(name);
        return place;
    }
    GPR_TRY(place.path_, behind_links(name));
    struct stat status {};
    const bool exists = stat(place.path_.c_str(), &status) == 0;
    if (!exists || S_ISREG(status.st_mode)) {
        const std::string folder = fs::path(place.path_).parent_path().string();
        const bool can = exists ? access(place.path_.c_str(), W_OK) == 0
                                : access(folder.c_str(), W_OK | X_OK) == 0;
        if (!can) return cannot_write(name);
        return place;
    }
    // Waiting for a pipe's reader could take for ever; O_NONBLOCK fails with ENXIO instead.
    place.stream_ = Fd(open(place.path_.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
    if (!place.stream_ && errno == ENXIO) {
        return fail(
            fmt::format("cannot write {}: nobody reads this pipe; start its reader first", name));
    }
    if (!place.stream_) return cannot_write(name);
    fcntl(place.stream_.get(), F_SETFL, fcntl(place.stream_.get(), F_GETFL) & ~O_NONBLOCK);
    return place;
}

Result<> replace_file(const std::string& path, std::string_view text) {
    std::string partial = path + ".XXXXXX";
    const Fd file(mkostemp(partial.data(), O_CLOEXEC));
    if (!file) return write_in_place(path, text);
    struct stat status {};
    const bool exists = stat(path.c_str(), &status) == 0;
    const mode_t mask = umask(0);
    umask(mask);
    // The owner may be another user, who must keep access.
    const bool is_alike = fchmod(file.get(), exists ? status.st_mode & 07777 : 0666 & ~mask) == 0 &&
                          (!exists || fchown(file.get(), status.st_uid, status.st_gid) == 0);
    const bool is_written = write_all(file.get(), text);
    if (is_alike && is_written && rename(partial.c_str(), path.c_str()) == 0) return {};
    const int error = errno;
    unlink(partial.c_str());
    if (is_written) return write_in_place(path, text);
    return fail(error, fmt::format("cannot write {}", path));
}

}  // namespace gpr
