// The mounts of file systems of this host that inotify tells everything of. Told by the number of a
// mount, as the file system itself must not be asked: a program of the session may serve it.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <unordered_map>

namespace gpr::home {

class LocalMounts {
public:
    // To be called when mounts have changed.
    void forget() { known_.clear(); }

    // A file as it is known without asking its file system.
    struct File {
        mode_t mode = 0;
        bool keeps_atime = false;      // never changes it
        bool keeps_atime_dir = false;  // of a directory
        bool relative_atime = false;
        bool in_memory = false;  // tmpfs
    };
    // nullopt: it is on another file system. fd: may be open with O_PATH.
    std::optional<File> file(int fd);

private:
    void read();

    std::unordered_map<uint64_t, File> known_;  // by number of the mount, without mode
};

// Whether looking at the file, or listing it, leaves its time of last access as it is, for an hour
// at least.
bool is_settled(const LocalMounts::File& file, const struct stat& status);

}  // namespace gpr::home
