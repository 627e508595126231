#include "monitor/home/open_file_watches.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>

namespace gpr::home {

namespace {

constexpr uint32_t of_itself = IN_ATTRIB | IN_MOVE_SELF;
constexpr uint32_t of_names = IN_CREATE | IN_DELETE | IN_MOVE;

std::string link_to(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

}  // namespace

OpenFileWatches::OpenFileWatches() : fd_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

// Opening with O_RDONLY | O_TRUNC changes content and breaks no lease: IN_MODIFY.
int OpenFileWatches::add_file(int file) { return add(link_to(file), of_itself | IN_MODIFY); }

int OpenFileWatches::add_directory(int directory) {
    return add(link_to(directory), of_itself | of_names | IN_DELETE_SELF);
}

int OpenFileWatches::add_above(int directory) {
    return add(link_to(directory) + "/..", IN_DELETE | IN_ONLYDIR);
}

int OpenFileWatches::add(const std::string& path, uint32_t changes) {
    const int watch = inotify_add_watch(fd_.get(), path.c_str(), changes | IN_MASK_ADD);
    if (watch >= 0) uses_[watch]++;
    return watch;
}

void OpenFileWatches::remove(int watch) {
    auto it = uses_.find(watch);
    if (it == uses_.end() || --it->second > 0) return;
    uses_.erase(it);
    inotify_rm_watch(fd_.get(), watch);
}

std::vector<OpenFileWatches::Change> OpenFileWatches::take_changes() {
    std::vector<Change> changes;
    alignas(inotify_event) std::array<char, 4096> events;
    for (;;) {
        const ssize_t got = ::read(fd_.get(), events.data(), events.size());
        if (got <= 0) return changes;
        for (size_t at = 0; at < static_cast<size_t>(got);) {
            const auto* event = reinterpret_cast<const inotify_event*>(events.data() + at);
            at += sizeof *event + event->len;
            // A directory is told of the status of what is in it, too.
            const bool of_child = event->len > 0 && !(event->mask & of_names);
            if ((event->mask & IN_IGNORED) || of_child) continue;
            changes.push_back({event->wd, (event->mask & IN_DELETE) && (event->mask & IN_ISDIR)});
        }
    }
}

}  // namespace gpr::home
