#include "monitor/home/watched_names.h"

#include <sys/inotify.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

namespace gpr::home {

namespace {

constexpr size_t most_watches = 1 << 14, least_watches = 1 << 10;
constexpr size_t most_ids = 1 << 16;

// Of a directory these come with a name, except what it and its own inode tell.
constexpr uint32_t changes_of_names = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
constexpr uint32_t changes_of_itself = IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF;
constexpr uint32_t ends = IN_IGNORED | IN_UNMOUNT;

// All sessions and other programs of a user share them, 8192 if the host has little memory.
size_t share_of_watches() {
    size_t all = 0;
    std::ifstream("/proc/sys/fs/inotify/max_user_watches") >> all;
    return std::clamp(all / 4, least_watches, most_watches);
}

// Some directories do not tell upper from lower case, and fold other characters, too: a name that
// is not ASCII stands for all of them.
std::string key_of(std::string_view name) {
    std::string key(name);
    for (char& c : key) {
        if (static_cast<unsigned char>(c) >= 0x80) return std::string(WatchedNames::anything);
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return key;
}

}  // namespace

WatchedNames::WatchedNames()
    : fd_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)), most_watches_(share_of_watches()) {}

int WatchedNames::add(const std::string& path, uint32_t events) {
    const int watch = inotify_add_watch(fd_.get(), path.c_str(), events);
    if (watch >= 0) watches_.try_emplace(watch);
    return watch;
}

int WatchedNames::watch(int file, bool listing) {
    const uint32_t events = changes_of_names | changes_of_itself;
    // Who needs to hear of listing shall not lose that to who does not.
    const uint32_t how = listing ? IN_ACCESS | IN_MASK_ADD : IN_MASK_ADD;
    return add("/proc/self/fd/" + std::to_string(file), events | how);
}

int WatchedNames::watch_link(int directory, const std::string& name) {
    const std::string path = "/proc/self/fd/" + std::to_string(directory) + "/" + name;
    return add(path, changes_of_itself | IN_DONT_FOLLOW);
}

int WatchedNames::watch_file(int file) {
    constexpr uint32_t changes = changes_of_itself | IN_MODIFY | IN_OPEN | IN_ACCESS;
    const int watch = add("/proc/self/fd/" + std::to_string(file), changes | IN_ONESHOT);
    if (watch >= 0 && !std::exchange(watches_[watch].is_file, true)) files_++;
    return watch;
}

uint32_t WatchedNames::make_id() {
    ids_[++last_id_] = false;
    return last_id_;
}

uint32_t WatchedNames::id_of(int watch, std::string_view name) {
    Names& names = watches_[watch].names;
    const std::string key = key_of(name);
    auto it = names.find(key);
    if (it == names.end()) it = names.emplace(key, make_id()).first;
    return it->second;
}

void WatchedNames::note_told(uint32_t id) {
    auto it = ids_.find(id);
    if (it != ids_.end()) it->second = true;
}

void WatchedNames::end(uint32_t id, Gone& gone) {
    auto it = ids_.find(id);
    if (it == ids_.end()) return;
    if (it->second) gone.ids.push_back(id);
    ids_.erase(it);
}

void WatchedNames::end_name(Names& names, std::string_view name, Gone& gone) {
    auto it = names.find(name);
    if (it == names.end()) return;
    end(it->second, gone);
    names.erase(it);
}

void WatchedNames::end_names(Names& names, Gone& gone) {
    for (const auto& [name, id] : names) end(id, gone);
    names.clear();
}

WatchedNames::Gone WatchedNames::take_gone() {
    Gone gone;
    alignas(inotify_event) std::array<char, 16384> events;
    for (;;) {
        const ssize_t got = ::read(fd_.get(), events.data(), events.size());
        if (got <= 0) return gone;
        for (size_t at = 0; at < static_cast<size_t>(got);) {
            const auto* event = reinterpret_cast<const inotify_event*>(events.data() + at);
            at += sizeof *event + event->len;
            if (event->mask & IN_Q_OVERFLOW) {
                clear();
                gone.all = true;
            }
            auto it = watches_.find(event->wd);
            if (it == watches_.end()) continue;
            Names& names = it->second.names;
            const std::string_view name = event->len > 0 ? event->name : "";
            if (name.empty() && !(event->mask & IN_ACCESS)) {
                end_names(names, gone);
            } else if (name.empty()) {
                end_name(names, anything, gone);
            } else if (event->mask & changes_of_names) {
                const std::string key = key_of(name);
                if (key == anything) end_names(names, gone);
                end_name(names, key, gone);
                end_name(names, anything, gone);
            }
            if (event->mask & ends) {
                if (it->second.is_file) files_--;
                watches_.erase(it);
            }
        }
    }
}

WatchedNames::Gone WatchedNames::drop(uint32_t id) {
    Gone gone;
    end(id, gone);
    return gone;
}

void WatchedNames::clear() {
    for (const auto& [watch, watched] : watches_) inotify_rm_watch(fd_.get(), watch);
    watches_.clear();
    files_ = 0;
    ids_.clear();
    drain();
}

// Each watch that was removed has made an event, of which nobody needs to hear.
void WatchedNames::drain() const {
    std::array<char, 16384> events;
    while (::read(fd_.get(), events.data(), events.size()) > 0) {
    }
}

bool WatchedNames::is_full() const {
    return watches_.size() >= most_watches_ || ids_.size() >= most_ids;
}

bool WatchedNames::is_full_of_files() const { return is_full() || files_ >= most_watches_ / 4 * 3; }

}  // namespace gpr::home
