// What inotify says of names in directories. Whoever relies on one gets an id for it, which holds
// until the name may mean something else: it is made, removed, or renamed. Ids are never used
// again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/fd.h"

namespace gpr::home {

class WatchedNames {
public:
    WatchedNames();

    // Instead of a name, which never contains a slash.
    static constexpr std::string_view itself = "";     // its permissions and place
    static constexpr std::string_view anything = "/";  // its whole status, all names in it

    // -1: there can be no inotify.
    [[nodiscard]] int fd() const { return fd_.get(); }
    // The watch of a directory or file, which may be open with O_PATH; -1: impossible. listing:
    // listing a directory changes it, too.
    int watch(int file, bool listing = false);
    // Likewise of a symbolic link.
    int watch_link(int directory, const std::string& name);
    // Of a regular file until it is opened once, or it or its place changes.
    int watch_file(int file);
    uint32_t id_of(int watch, std::string_view name);
    // An id that only drop() ends.
    uint32_t make_id();
    [[nodiscard]] bool holds(uint32_t id) const { return ids_.contains(id); }
    // Somebody elsewhere relies on the id.
    void note_told(uint32_t id);

    struct Gone {
        bool all = false;
        std::vector<uint32_t> ids;  // of which somebody was told
        [[nodiscard]] bool none() const { return !all && ids.empty(); }
    };
    // Reads events.
    Gone take_gone();
    Gone drop(uint32_t id);
    // Ends all ids and watches.
    void clear();
    // So many that it is time to begin anew.
    [[nodiscard]] bool is_full() const;
    // So many regular files that the rest is for directories.
    [[nodiscard]] bool is_full_of_files() const;
    [[nodiscard]] bool empty() const { return ids_.empty(); }

private:
    using Names = std::map<std::string, uint32_t, std::less<>>;
    struct Watched {
        Names names;
        bool is_file = false;
    };

    int add(const std::string& path, uint32_t events);
    void drain() const;
    void end(uint32_t id, Gone& gone);
    void end_name(Names& names, std::string_view name, Gone& gone);
    void end_names(Names& names, Gone& gone);

    Fd fd_;
    size_t most_watches_;
    std::unordered_map<int, Watched> watches_;
    size_t files_ = 0;                        // of these
    std::unordered_map<uint32_t, bool> ids_;  // and whether somebody was told
    uint32_t last_id_ = 0;
};

}  // namespace gpr::home
