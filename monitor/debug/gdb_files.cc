#include "monitor/debug/gdb_files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "monitor/debug/gdb_packets.h"

namespace gpr::debug {

namespace {

constexpr size_t most_files = 16;

// gdb has error numbers of its own (its include/gdb/fileio.h); those below 32 are the usual ones.
std::string failure(int error) {
    constexpr int unknown = 9999;
    constexpr int last_common = 31;
    return fmt::format("F-1,{:x}", error > 0 && error <= last_common ? error : unknown);
}

void append(std::string& bytes, uint64_t number, size_t width) {
    for (size_t at = width; at > 0; at--) bytes += static_cast<char>(number >> 8 * (at - 1));
}

// The layout of gdb's struct fio_stat, which is big-endian.
std::string to_bytes(const struct stat& status) {
    std::string bytes;
    append(bytes, status.st_dev, 4);
    append(bytes, status.st_ino, 4);
    append(bytes, status.st_mode, 4);
    append(bytes, status.st_nlink, 4);
    append(bytes, status.st_uid, 4);
    append(bytes, status.st_gid, 4);
    append(bytes, status.st_rdev, 4);
    append(bytes, static_cast<uint64_t>(status.st_size), 8);
    append(bytes, static_cast<uint64_t>(status.st_blksize), 8);
    append(bytes, static_cast<uint64_t>(status.st_blocks), 8);
    append(bytes, static_cast<uint64_t>(status.st_atime), 4);
    append(bytes, static_cast<uint64_t>(status.st_mtime), 4);
    append(bytes, static_cast<uint64_t>(status.st_ctime), 4);
    return bytes;
}

// An answer with as much of the data as fits into a packet.
std::string with_data(std::string_view data) {
    constexpr size_t head = 16;
    const std::string_view fitting = that_fit(data, most_packet_bytes - head);
    return fmt::format("F{:x};", fitting.size()).append(fitting);
}

}  // namespace

std::string GdbFiles::answer(std::string_view operation) {
    const std::string_view name = take_until(operation, ':');
    if (name == "setfs") return "F0";  // all paths are those that the process sees
    if (name == "open") return open(operation);
    if (name == "pread") return read(operation);
    if (name == "fstat") return describe(operation);
    if (name == "close") return close(operation);
    if (name == "readlink") return read_link(operation);
    return "";
}

const GdbProcesses::One* GdbFiles::take_folder(std::string_view& path) const {
    for (const auto& [pid, one] : processes_.all()) {
        const std::string folder = fmt::format("/proc/{}/", pid);
        if (!path.starts_with(folder)) continue;
        path.remove_prefix(folder.size());
        return &one;
    }
    return nullptr;
}

// gdb does not say whose file it wants.
Result<Fd> GdbFiles::open_mapped(const std::string& path) const {
    Result<Fd> opened = fail(ENOENT, "there is no process");
    for (const auto& [pid, one] : processes_.all()) {
        opened = one.process->memory().open_mapped_file(path);
        if (opened) return opened;
    }
    return opened;
}

std::string GdbFiles::open(std::string_view arguments) {
    const auto path = from_hex(take_until(arguments, ','));
    const auto flags = to_number(take_until(arguments, ','));
    if (!path || !flags) return failure(EINVAL);
    if (*flags != 0) return failure(EROFS);  // 0 is O_RDONLY
    if (files_.size() >= most_files) return failure(EMFILE);
    File file;
    std::string_view name = *path;
    const GdbProcesses::One* its = take_folder(name);
    const bool of_thread = name.starts_with("task/") && name.ends_with("/maps");
    if (its && (name == "maps" || name == "smaps" || of_thread)) {
        file.content = its->shown().memory().maps();
    } else {
        auto opened = open_mapped(*path);
        if (!opened) return failure(opened.error().code);
        file.fd = std::move(*opened);
    }
    uint64_t number = 0;
    while (files_.contains(number)) number++;
    files_.emplace(number, std::move(file));
    return fmt::format("F{:x}", number);
}

const GdbFiles::File* GdbFiles::find(std::string_view number) const {
    const auto parsed = to_number(number);
    const auto found = parsed ? files_.find(*parsed) : files_.end();
    return found == files_.end() ? nullptr : &found->second;
}

std::string GdbFiles::read(std::string_view arguments) const {
    const File* file = find(take_until(arguments, ','));
    const auto count = to_number(take_until(arguments, ','));
    const auto offset = to_number(arguments);
    if (!file) return failure(EBADF);
    if (!count || !offset) return failure(EINVAL);
    const size_t length = std::min<uint64_t>(*count, most_packet_bytes);
    if (!file->fd) {
        const std::string_view content = file->content;
        return with_data(content.substr(std::min(*offset, content.size()), length));
    }
    std::string data(length, '\0');
    const ssize_t got = ::pread(file->fd.get(), data.data(), length, static_cast<off_t>(*offset));
    if (got < 0) return failure(errno);
    return with_data(std::string_view(data).substr(0, static_cast<size_t>(got)));
}

std::string GdbFiles::describe(std::string_view arguments) const {
    const File* file = find(arguments);
    if (!file) return failure(EBADF);
    struct stat status {};
    if (!file->fd) {
        status.st_mode = S_IFREG | S_IRUSR;
        status.st_size = static_cast<off_t>(file->content.size());
    } else if (::fstat(file->fd.get(), &status) != 0) {
        return failure(errno);
    }
    return with_data(to_bytes(status));
}

std::string GdbFiles::close(std::string_view arguments) {
    const auto number = to_number(arguments);
    return number && files_.erase(*number) == 1 ? "F0" : failure(EBADF);
}

std::string GdbFiles::read_link(std::string_view arguments) const {
    const auto path = from_hex(arguments);
    if (!path) return failure(EINVAL);
    std::string_view name = *path;
    const GdbProcesses::One* its = take_folder(name);
    if (!its || name != "exe") return failure(ENOENT);
    return with_data(its->shown().memory().executable());
}

}  // namespace gpr::debug
