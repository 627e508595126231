#include "monitor/home/external_sharers.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "monitor/node/process_names.h"
#include "monitor/tracee/remote_memory_raw.h"

namespace gpr {

namespace {

// System V segments have no notification of attachments, so they are polled.
constexpr std::chrono::milliseconds segments_every{20};
// The pause after a search that could wait, as a multiple of the time that it took.
constexpr int rest_after_look = 10;
// How long a search may run before it lets other work proceed.
constexpr std::chrono::microseconds look_at_once{500};
constexpr std::string_view segment_name = "/SYSV";

struct CloseDir {
    void operator()(DIR* dir) const { closedir(dir); }
};
using Dir = std::unique_ptr<DIR, CloseDir>;

uint64_t id_of(int inotify, int segment) {
    return static_cast<uint64_t>(static_cast<uint32_t>(inotify)) << 32 |
           static_cast<uint32_t>(segment);
}

bool is_number(const char* name) { return name[0] >= '0' && name[0] <= '9'; }

// The processes that a worker on this host traces have thousands of descriptors, of files of their
// own.
bool is_worker(pid_t pid) {
    std::ifstream in(fmt::format("/proc/{}/comm", pid));
    std::string name;
    return std::getline(in, name) && name == worker_process_name;
}

pid_t tracer_of(pid_t pid) {
    std::ifstream in(fmt::format("/proc/{}/status", pid));
    constexpr std::string_view name = "TracerPid:";
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with(name)) return std::atoi(line.c_str() + name.size());
    }
    return 0;
}

// The fifth field of a line of /proc/PID/maps.
uint64_t inode_of(std::string_view line) {
    constexpr int fields_before = 4;
    for (int i = 0; i < fields_before; i++) {
        size_t space = line.find(' ');
        if (space == line.npos) return 0;
        line.remove_prefix(space + 1);
    }
    uint64_t inode = 0;
    std::from_chars(line.data(), line.data() + line.size(), inode);
    return inode;
}

// Matches processes against files by inode, because a program may share hundreds of files and a
// process may have thousands of mappings.
class Search {
public:
    explicit Search(const std::vector<FileNames>& files) : files_(files), uses_(files.size()) {
        for (size_t i = 0; i < files.size(); i++) {
            mapped_[files[i].mapped_inode].push_back(i);
            opened_[files[i].inode].push_back(i);
        }
    }

    void look_at(pid_t pid, bool known) {
        const pid_t tracer = tracer_of(pid);
        if (tracer == getpid() && !known) return;
        found_.clear();
        look_at_memory(pid);
        if (tracer == 0 || !is_worker(tracer)) look_at_descriptors(pid);
        for (auto [file, writes] : found_) {
            uses_[file].any = true;
            uses_[file].writes |= writes;
        }
    }

    std::vector<OutsideUse> found() && { return std::move(uses_); }

private:
    // Indexes into files_, by inode.
    using Places = std::unordered_map<uint64_t, std::vector<size_t>>;

    // A quick test by inode only: parsing every line would take most of the time.
    bool may_map(pid_t pid) {
        Fd in(open(fmt::format("/proc/{}/maps", pid).c_str(), O_RDONLY | O_CLOEXEC));
        size_t size = 0;
        for (ssize_t got = 1; got > 0; size += static_cast<size_t>(got)) {
            if (text_.size() < size + read_at_once) text_.resize(size + read_at_once);
            got = std::max<ssize_t>(read(in.get(), text_.data() + size, read_at_once), 0);
        }
        std::string_view text(text_.data(), size);
        while (!text.empty()) {
            size_t end = std::min(text.find('\n'), text.size() - 1);
            if (mapped_.contains(inode_of(text.substr(0, end)))) return true;
            text.remove_prefix(end + 1);
        }
        return false;
    }

    void look_at_memory(pid_t pid) {
        auto maps = may_map(pid) ? read_maps(pid) : std::vector<MapsEntry>{};
        for (const MapsEntry& e : maps ? *maps : std::vector<MapsEntry>{}) {
            if (e.inode == 0 && !e.name.starts_with(segment_name)) continue;
            note(mapped_, e.inode, e.shared && (e.prot & PROT_WRITE),
                 [&](const FileNames& f) { return f.mapped_device == e.device; });
        }
    }

    void look_at_descriptors(pid_t pid) {
        Dir fds(opendir(fmt::format("/proc/{}/fd", pid).c_str()));
        while (dirent* fd = fds ? readdir(fds.get()) : nullptr) {
            struct statx st {};
            // AT_STATX_DONT_SYNC: a network or FUSE server is not asked; it may be a process of
            // ours.
            if (!is_number(fd->d_name) ||
                statx(dirfd(fds.get()), fd->d_name, AT_STATX_DONT_SYNC, STATX_INO, &st) != 0 ||
                !opened_.contains(st.stx_ino)) {
                continue;
            }
            struct stat opened {};
            bool known = fstatat(dirfd(fds.get()), fd->d_name, &opened, AT_SYMLINK_NOFOLLOW) == 0;
            note(opened_, st.stx_ino, known && (opened.st_mode & S_IWUSR), [&](const FileNames& f) {
                return f.device == makedev(st.stx_dev_major, st.stx_dev_minor);
            });
        }
    }

    template <class Is>
    void note(const Places& places, uint64_t inode, bool writes, Is is) {
        auto found = places.find(inode);
        if (found == places.end()) return;
        for (size_t i : found->second) {
            if (is(files_[i])) found_[i] |= writes;
        }
    }

    static constexpr size_t read_at_once = 1 << 16;
    const std::vector<FileNames>& files_;
    Places mapped_, opened_;
    std::vector<OutsideUse> uses_;  // by all processes
    // For one process: the files that it uses, and whether it may write them.
    std::map<size_t, bool> found_;
    std::string text_;
};

}  // namespace

ExternalSharers::ExternalSharers(Loop& loop, std::function<void()> on_news)
    : loop_(loop),
      on_news_(std::move(on_news)),
      turn_(loop),
      inotify_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    if (!inotify_) {
        spdlog::warn("who opens files that the program shares is not seen: no inotify");
        return;
    }
    readable_ = loop.watch(inotify_.get(), POLLIN, [this](uint32_t) { on_news_(); });
}

bool ExternalSharers::Watched::has_name(const Fd& path) const {
    struct stat st {};
    return segment >= 0 || (named && fstat(path.get(), &st) == 0 && st.st_nlink > 0);
}

std::optional<uint64_t> ExternalSharers::Watched::id() const {
    if (inotify < 0 && segment < 0) return std::nullopt;
    return id_of(inotify, segment);
}

ExternalSharers::Watched ExternalSharers::watch(const Fd& path, const std::string& mapped_as,
                                                uint64_t mapped_inode) {
    Watched watched;
    if (mapped_as.starts_with(segment_name)) {
        watched.segment = static_cast<int>(mapped_inode);
        attachments_[watched.segment] = 0;
        if (!std::exchange(polling_, true)) {
            loop_.after(segments_every, [this] { look_at_segments(); });
        }
    } else if (path && inotify_) {
        watched.named = !mapped_as.starts_with("/memfd:");
        auto link = fmt::format("/proc/self/fd/{}", path.get());
        watched.inotify =
            inotify_add_watch(inotify_.get(), link.c_str(), IN_OPEN | IN_MODIFY | IN_CLOSE_WRITE);
        if (watched.inotify >= 0) {
            users_[watched.inotify]++;
        } else {
            spdlog::warn("who opens {}, which the program shares, is not seen: {}", mapped_as,
                         std::strerror(errno));
        }
    }
    return watched;
}

void ExternalSharers::forget(const Watched& watched) {
    attachments_.erase(watched.segment);
    auto it = users_.find(watched.inotify);
    if (it == users_.end() || --it->second > 0) return;
    inotify_rm_watch(inotify_.get(), watched.inotify);
    users_.erase(it);
}

void ExternalSharers::look_at_segments() {
    polling_ = !attachments_.empty();
    if (!polling_) return;
    on_news_();
    loop_.after(segments_every, [this] { look_at_segments(); });
}

ExternalSharers::News ExternalSharers::take_news() {
    News news;
    news.look_due = std::exchange(look_due_, false);
    news.by_us = std::exchange(opened_ourselves_, openings_ > 0);
    alignas(inotify_event) char events[4096];
    for (;;) {
        ssize_t size = inotify_ ? read(inotify_.get(), events, sizeof events) : 0;
        if (size <= 0) break;
        for (ssize_t at = 0; at < size;) {
            auto* event = reinterpret_cast<const inotify_event*>(events + at);
            at += static_cast<ssize_t>(sizeof *event + event->len);
            if (event->mask & IN_Q_OVERFLOW) {
                for (auto [inotify, users] : users_) {
                    news.opened.insert(id_of(inotify, -1));
                    news.written.insert(id_of(inotify, -1));
                }
            }
            if (event->mask & IN_OPEN) news.opened.insert(id_of(event->wd, -1));
            if (event->mask & (IN_MODIFY | IN_CLOSE_WRITE)) {
                news.written.insert(id_of(event->wd, -1));
            }
            if (event->mask & IN_IGNORED && users_.erase(event->wd) > 0) {
                news.ended.insert(id_of(event->wd, -1));
            }
        }
    }
    for (auto& [segment, before] : attachments_) {
        shmid_ds state{};
        if (shmctl(segment, IPC_STAT, &state) != 0 || state.shm_nattch == before) continue;
        before = state.shm_nattch;
        news.opened.insert(id_of(-1, segment));
    }
    return news;
}

Task<std::optional<std::vector<OutsideUse>>> ExternalSharers::look(
    std::vector<FileNames> files, std::function<Whose(pid_t)> whose) {
    uint64_t number = ++looks_;
    looking_++;
    Clock::duration worked{};
    auto begin = Clock::now();
    Search search(files);
    Dir proc(opendir("/proc"));
    while (dirent* entry = proc ? readdir(proc.get()) : nullptr) {
        if (!is_number(entry->d_name)) continue;
        pid_t pid = std::atoi(entry->d_name);
        const Whose its = whose(pid);
        if (its != Whose::sessions) search.look_at(pid, its == Whose::others);
        auto spent = Clock::now() - begin;
        if (spent < look_at_once) continue;
        worked += spent;
        co_await loop_.sleep({});
        begin = Clock::now();
    }
    worked += Clock::now() - begin;
    next_look_ = Clock::now() + rest_after_look * worked;
    if (--looking_ == 0 && std::exchange(look_wanted_, false)) look_later();
    spdlog::debug("looked for others who use {} shared objects: {} us", files.size(),
                  std::chrono::duration_cast<std::chrono::microseconds>(worked).count());
    if (number < last_told_) co_return std::nullopt;
    last_told_ = number;
    co_return std::move(search).found();
}

bool ExternalSharers::may_look() {
    if (looking_ > 0) {
        look_wanted_ = true;
        return false;
    }
    bool rested = Clock::now() >= next_look_;
    if (!rested) look_later();
    return rested;
}

void ExternalSharers::look_later() {
    if (std::exchange(look_planned_, true)) return;
    loop_.after(next_look_ - Clock::now(), [this] {
        look_planned_ = false;
        look_due_ = true;
        on_news_();
    });
}

}  // namespace gpr
