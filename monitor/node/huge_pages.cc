#include "monitor/node/huge_pages.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/address.h"
#include "monitor/node/anonymous_memory.h"

namespace gpr {

namespace {

constexpr unsigned huge_shift = 26, huge_mask = 63;  // MAP_HUGE_SHIFT, MAP_HUGE_MASK

uint64_t default_size() {
    std::ifstream in("/proc/meminfo");
    std::string name, line;
    uint64_t kb = 2048;
    while (in >> name && name != "Hugepagesize:") std::getline(in, line);
    in >> kb;
    return kb << 10;
}

uint64_t page_size_of(const uint64_t* args, const std::string& link) {
    if (args[3] & MAP_ANONYMOUS) {
        if (!(args[3] & MAP_HUGETLB)) return page_size;
        uint64_t bits = args[3] >> huge_shift & huge_mask;
        return bits == 0 ? default_size() : 1ULL << bits;
    }
    struct statfs file {};
    bool huge = has_huge_pages(link) && statfs(link.c_str(), &file) == 0;
    return huge ? static_cast<uint64_t>(file.f_bsize) : page_size;
}

std::vector<std::string> huge_mounts() {
    std::vector<std::string> found;
    std::ifstream in("/proc/self/mounts");
    std::string device, place, type, line;
    while (in >> device >> place >> type && std::getline(in, line)) {
        if (type == "hugetlbfs") found.push_back(place + "/");
    }
    return found;
}

}  // namespace

uint64_t mapped_size(const uint64_t* args, const std::string& link) {
    uint64_t page = page_size_of(args, link);
    return (args[1] + page - 1) & ~(page - 1);
}

bool has_huge_pages() {
    std::error_code none;
    for (const auto& size : std::filesystem::directory_iterator("/sys/kernel/mm/hugepages", none)) {
        for (const char* count : {"nr_hugepages", "nr_overcommit_hugepages"}) {
            uint64_t pages = 0;
            if (std::ifstream(size.path() / count) >> pages && pages > 0) return true;
        }
    }
    return false;
}

// Does not ask the file system, which may be served by the program itself (FUSE) and wait for us.
bool has_huge_pages(const std::string& link) {
    static const std::vector<std::string> mounts = huge_mounts();
    std::error_code error;
    std::string name = std::filesystem::read_symlink(link, error).string();
    struct statfs file {};
    if (name.starts_with("/memfd:")) {
        return statfs(link.c_str(), &file) == 0 && file.f_type == HUGETLBFS_MAGIC;
    }
    return std::ranges::any_of(mounts, [&](const auto& place) { return name.starts_with(place); });
}

Task<int64_t> make_small(StubThread& caller, const uint64_t* args, int64_t mapped) {
    const Address at{static_cast<uint64_t>(mapped)};
    co_return co_await map_anonymous(caller, {at, at + mapped_size(args, "")},
                                     static_cast<int>(args[2]));
}

}  // namespace gpr
