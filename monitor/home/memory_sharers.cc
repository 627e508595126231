#include "monitor/home/memory_sharers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "monitor/home/home.h"
#include "monitor/home/process.h"
#include "monitor/home/shared_memory.h"
#include "monitor/tracee/remote_memory_raw.h"

namespace gpr::home {

namespace {

// Objects that a process maps shared, and whether it may write them.
template <class Object>
using Shared = std::map<Object, bool>;

// Device, inode, and whether it is a System V segment, whose inode is its id.
using ObjectHere = std::tuple<uint64_t, uint64_t, bool>;

Shared<ObjectHere> shared_at_home(pid_t pid) {
    Shared<ObjectHere> objects;
    const auto maps = read_maps(pid);
    for (const MapsEntry& e : maps ? *maps : std::vector<MapsEntry>{}) {
        const bool is_segment = e.name.starts_with("/SYSV");
        if (!e.shared || (e.inode == 0 && !is_segment)) continue;
        objects[{e.device, e.inode, is_segment}] |= may_be_written(e);
    }
    return objects;
}

Shared<ObjectId> shared_of_split(const HomeProcess& process) {
    Shared<ObjectId> objects;
    for (const auto& [begin, m] : process.fragment->space.all()) {
        if (m.shared) objects[m.object] |= m.may_write || (m.prot & PROT_WRITE);
    }
    return objects;
}

// Adds to `found` whoever shares an object with one of them, which one of the two may write.
template <class Object>
void add_sharers(std::vector<pid_t>& found, const std::map<pid_t, Shared<Object>>& all) {
    std::map<Object, std::vector<pid_t>> users;
    for (const auto& [pid, objects] : all) {
        for (const auto& [object, writes] : objects) users[object].push_back(pid);
    }
    std::set<pid_t> seen(found.begin(), found.end());
    for (size_t i = 0; i < found.size(); i++) {
        const auto its = all.find(found[i]);
        if (its == all.end()) continue;
        for (const auto& [object, writes] : its->second) {
            for (const pid_t other : users.at(object)) {
                const bool shares = writes || all.at(other).at(object);
                if (shares && seen.insert(other).second) found.push_back(other);
            }
        }
    }
}

}  // namespace

std::vector<pid_t> sharers_at_home(const Home& home, pid_t pid) {
    std::vector<pid_t> found{pid};
    std::map<pid_t, Shared<ObjectHere>> all;
    all[pid] = shared_at_home(pid);
    if (all[pid].empty()) return found;
    for (const auto& [other, process] : home.processes) {
        const bool at_home = process->state == HomeProcess::State::native && !process->finished;
        if (other != pid && at_home) all[other] = shared_at_home(other);
    }
    add_sharers(found, all);
    return found;
}

std::vector<pid_t> with_split_sharers(const Home& home, const std::vector<pid_t>& pids) {
    std::vector<pid_t> found = pids;
    if (home.shared_memory.files().empty()) return found;
    std::map<pid_t, Shared<ObjectId>> all;
    for (const auto& [pid, process] : home.processes) {
        if (process->fragment && !process->finished) all[pid] = shared_of_split(*process);
    }
    add_sharers(found, all);
    return found;
}

bool maps_memory_of_split(const Home& home, const HomeProcess& process, const Notification& n) {
    const auto& files = home.shared_memory.files();
    if (n.number == SYS_shmat) {
        return std::ranges::any_of(files, [&](const auto& entry) {
            const SharedFile& file = entry.second;
            return file.identity.is_segment && file.names.mapped_inode == n.args[0];
        });
    }
    if (files.empty() || (n.args[3] & MAP_ANONYMOUS)) return false;
    // Without asking the file system, which the program itself may serve (FUSE).
    struct statx st {};
    const auto link = fmt::format("/proc/{}/fd/{}", process.pid, static_cast<int>(n.args[4]));
    if (statx(AT_FDCWD, link.c_str(), AT_STATX_DONT_SYNC, STATX_INO, &st) != 0) return false;
    const uint64_t device = makedev(st.stx_dev_major, st.stx_dev_minor);
    return std::ranges::any_of(files, [&](const auto& entry) {
        const FileNames& names = entry.second.names;
        return names.device == device && names.inode == st.stx_ino;
    });
}

}  // namespace gpr::home
