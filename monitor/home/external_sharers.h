// External sharers: processes outside of a session that use files and segments that its program
// shares.
//
// /proc tells which processes have one open or mapped, but reading it takes milliseconds.
// inotify(7) tells that another process may have opened one, and for System V segments their number
// of attachments does.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/task.h"
#include "transport/loop.h"

namespace gpr {

// A file's identity. File systems such as btrfs show other numbers in /proc/PID/maps than stat(2).
struct FileNames {
    uint64_t mapped_device = 0, mapped_inode = 0;  // for a System V segment, mapped_inode is its id
    uint64_t device = 0, inode = 0;
    bool operator==(const FileNames&) const = default;
};

struct OutsideUse {
    bool any = false;
    bool writes = false;  // open for writing, or mapped writable
};

class ExternalSharers {
public:
    // on_news: called when take_news() has something.
    explicit ExternalSharers(Loop& loop, std::function<void()> on_news);

    // A file or segment that is watched.
    class Watched {
    public:
        // Whether another process may open it by name. That process must find it up to date.
        [[nodiscard]] bool has_name(const Fd& path) const;
        // Whether it has a name, or can be given one again.
        [[nodiscard]] bool may_have_name() const { return named || segment >= 0; }
        // nullopt if it cannot be watched.
        [[nodiscard]] std::optional<uint64_t> id() const;

    private:
        friend class ExternalSharers;
        int inotify = -1;
        int segment = -1;
        bool named = false;
    };
    // mapped_as: its name in /proc/PID/maps.
    Watched watch(const Fd& path, const std::string& mapped_as, uint64_t mapped_inode);
    void forget(const Watched& watched);

    // Exists while the program itself opens a file: a file opened meanwhile was most likely opened
    // by it.
    class Opening {
    public:
        explicit Opening(ExternalSharers& of) : of_(of) {
            of_.openings_++;
            of_.opened_ourselves_ = true;
        }
        ~Opening() { of_.openings_--; }
        Opening(const Opening&) = delete;
        Opening& operator=(const Opening&) = delete;

    private:
        ExternalSharers& of_;
    };

    // Events since the last call.
    struct News {
        std::set<uint64_t> opened;  // ids of files opened, or segments attached
        bool by_us = false;         // most likely by our own program
        // ids of files that a call has modified, or that were closed after being open for writing.
        std::set<uint64_t> written;
        std::set<uint64_t> ended;  // ids of files that are gone
        bool look_due = false;     // a search that had to wait may be made now
    };
    News take_news();

    // Of a process; an unknown one belongs to the session if we trace it: it has just been born.
    enum class Whose : uint8_t { sessions, others, unknown };
    // Searches /proc. Returns for each file its uses by processes of others; those whose /proc we
    // may not read are not seen. Other work proceeds meanwhile. nullopt if a search that began
    // later has ended before.
    Task<std::optional<std::vector<OutsideUse>>> look(std::vector<FileNames> files,
                                                      std::function<Whose(pid_t)> whose);
    // Whether a search that can wait may be made now. If not, because one is under way or has just
    // ended, there will be news when it may.
    bool may_look();
    // Requests a search that can wait.
    void want_look() { look_due_ = true; }

    // Held while news are processed.
    [[nodiscard]] auto turn() { return turn_.lock(); }

private:
    void look_at_segments();
    void look_later();

    Loop& loop_;
    std::function<void()> on_news_;
    AsyncMutex turn_;
    Fd inotify_;
    gpr::Watch readable_;
    std::map<int, int> users_;             // of each inotify watch; a file may be watched twice
    std::map<int, uint64_t> attachments_;  // attachment count by segment
    bool polling_ = false;
    int openings_ = 0;
    bool opened_ourselves_ = false;
    uint64_t looks_ = 0, last_told_ = 0;
    Clock::time_point next_look_{};
    int looking_ = 0;
    bool look_wanted_ = false;  // after those that are under way
    bool look_planned_ = false, look_due_ = false;
};

}  // namespace gpr
