#include "monitor/home/open_file_watches.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>

namespace gpr::home {

namespace {

constexpr uint32_t of_itself = IN_ATTRIB | IN_MOVE_SELF;

std::string link_to(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

}  // namespace

OpenFileWatches::OpenFileWatches() : fd_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

// Opening with O_RDONLY | O_TRUNC changes content and breaks no lease: IN_MODIFY.
int OpenFileWatches::add_file(int file) { return add(link_to(file), of_itself | IN_MODIFY); }

int OpenFileWatches::add_directory(int directory) {
    constexpr uint32_t of_names = IN_CREATE | IN_DELETE | IN_MOVE | IN_DELETE_SELF;
    return add(link_to(directory), of_itself | of_names);
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

std::vector<int> OpenFileWatches::take_changed() {
    std::vector<int> changed;
    alignas(inotify_event) std::array<char, 4096> events;
    for (;;) {
        const ssize_t got = ::read(fd_.get(), events.data(), events.size());
        if (got <= 0) return changed;
        for (size_t at = 0; at < static_cast<size_t>(got);) {
            const auto* event = reinterpret_cast<const inotify_event*>(events.data() + at);
            if (!(event->mask & IN_IGNORED)) changed.push_back(event->wd);
            at += sizeof *event + event->len;
        }
    }
}

}  // namespace gpr::home
