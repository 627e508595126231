// Processes outside a session that use the files and segments that its program shares.
//
// Who has one open or mapped /proc tells, which takes milliseconds; that somebody new may have it,
// inotify(7), and for System V segments their number of attachments.
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

// One file's: file systems such as btrfs show others in /proc/PID/maps than stat(2) gives.
struct FileNames {
    uint64_t mapped_device = 0, mapped_inode = 0;  // of a System V segment: the second is its id
    uint64_t device = 0, inode = 0;
    bool operator==(const FileNames&) const = default;
};

struct OutsideUse {
    bool any = false;
    bool writes = false;  // it is open for writing, or mapped so
};

class Outsiders {
public:
    // on_news: call take_news().
    explicit Outsiders(Loop& loop, std::function<void()> on_news);

    // What take_news() listens for.
    class Watched {
    public:
        // Somebody may open it by its name: what he finds must be in order before he hears of it.
        [[nodiscard]] bool has_name(const Fd& path) const;
        // It has one now, or can be given one again.
        [[nodiscard]] bool may_have_name() const { return named || segment >= 0; }
        // Nothing: news of it are not to be had.
        [[nodiscard]] std::optional<uint64_t> id() const;

    private:
        friend class Outsiders;
        int inotify = -1;
        int segment = -1;
        bool named = false;
    };
    // mapped_as: its name in /proc/PID/maps.
    Watched watch(const Fd& path, const std::string& mapped_as, uint64_t mapped_inode);
    void forget(const Watched& watched);

    // While the program itself opens a file: who has opened one meanwhile was most likely it.
    class Opening {
    public:
        explicit Opening(Outsiders& of) : of_(of) {
            of_.openings_++;
            of_.opened_ourselves_ = true;
        }
        ~Opening() { of_.openings_--; }
        Opening(const Opening&) = delete;
        Opening& operator=(const Opening&) = delete;

    private:
        Outsiders& of_;
    };

    // Since the last time.
    struct News {
        std::set<uint64_t> opened;   // ids of what somebody has opened or attached
        bool by_us = false;          // most likely
        std::set<uint64_t> written;  // by a call, which may have changed its size
        std::set<uint64_t> ended;    // ids of what is no more
        bool look_due = false;       // one that could wait is to be had now
    };
    News take_news();

    // Of each file, all uses by processes that are not ours: known, or traced by us. Of those whose
    // /proc we may not read nothing is known. Other work goes on meanwhile. Nothing: a later look
    // has ended before.
    Task<std::optional<std::vector<OutsideUse>>> look(std::vector<FileNames> files,
                                                      std::function<bool(pid_t)> is_ours);
    // For one that can wait. No: one goes on or was just now, and there will be news.
    bool may_look();
    // There is reason for one that can wait.
    void want_look() { look_due_ = true; }

    // Held while what has been heard is put in order.
    [[nodiscard]] auto turn() { return turn_.lock(); }

private:
    void look_at_segments();
    void look_later();

    Loop& loop_;
    std::function<void()> on_news_;
    AsyncMutex turn_;
    Fd inotify_;
    gpr::Watch readable_;
    std::map<int, int> users_;             // of each inotify watch: one file may be known twice
    std::map<int, uint64_t> attachments_;  // by segment
    bool polling_ = false;
    int openings_ = 0;
    bool opened_ourselves_ = false;
    uint64_t looks_ = 0, last_told_ = 0;
    Clock::time_point next_look_{};
    int looking_ = 0;
    bool look_wanted_ = false;  // when those that go on are over
    bool look_planned_ = false, look_due_ = false;
};

}  // namespace gpr
