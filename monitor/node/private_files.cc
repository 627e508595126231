#include "monitor/node/private_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "monitor/tracee/mapping_at.h"

namespace gpr {

namespace {

Fd open_to_read(const std::string& path) {
    return Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
}

}  // namespace

std::shared_ptr<Fd> PrivateFiles::of_descriptor(pid_t pid, int fd) {
    return keep(open_to_read(fmt::format("/proc/{}/fd/{}", pid, fd)));
}

// Through /proc/PID/map_files, which needs CAP_CHECKPOINT_RESTORE, else by its name, if that still
// is the same file.
std::shared_ptr<Fd> PrivateFiles::of_mapping(pid_t pid, Address at) {
    const auto entry = mapping_at(pid, at);
    if (!entry || entry->inode == 0) return nullptr;
    Fd mapped = open_to_read(fmt::format("/proc/{}/map_files/{:x}-{:x}", pid,
                                         entry->range.begin.value, entry->range.end.value));
    if (mapped) return keep(std::move(mapped));
    Fd named = open_to_read(fmt::format("/proc/{}/root{}", pid, entry->name));
    struct stat st {};
    bool same = named && fstat(named.get(), &st) == 0 && st.st_ino == entry->inode &&
                st.st_dev == entry->device;
    return same ? keep(std::move(named)) : nullptr;
}

std::shared_ptr<Fd> PrivateFiles::keep(Fd opened) {
    struct stat st {};
    if (!opened || fstat(opened.get(), &st) != 0 || !S_ISREG(st.st_mode)) return nullptr;
    std::pair<uint64_t, uint64_t> identity{st.st_dev, st.st_ino};
    if (auto known = find(identity.first, identity.second)) return known;
    std::erase_if(files_, [](const auto& entry) { return entry.second.expired(); });
    auto file = std::make_shared<Fd>(std::move(opened));
    files_[identity] = file;
    return file;
}

std::shared_ptr<Fd> PrivateFiles::find(uint64_t device, uint64_t inode) const {
    auto it = files_.find({device, inode});
    return it == files_.end() ? nullptr : it->second.lock();
}

std::vector<std::shared_ptr<Fd>> PrivateFiles::all() const {
    std::vector<std::shared_ptr<Fd>> open;
    for (const auto& [identity, known] : files_) {
        if (auto file = known.lock()) open.push_back(std::move(file));
    }
    return open;
}

}  // namespace gpr
