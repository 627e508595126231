#include "monitor/tracee/mapping_at.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"

namespace gpr {
namespace {

TEST_CASE("what is found at an address is the line of /proc/PID/maps about it") {
    Fd file(memfd_create("mapping_at_test", MFD_CLOEXEC));
    REQUIRE(ftruncate(file.get(), 4 * 4096) == 0);
    void* shown = mmap(nullptr, 2 * 4096, PROT_READ, MAP_SHARED, file.get(), 4096);
    REQUIRE(shown != MAP_FAILED);
    auto maps = read_maps(getpid());
    REQUIRE(maps);
    size_t compared = 0;
    for (const MapsEntry& e : *maps) {
        // What the test itself uses meanwhile may grow.
        if (e.name == "[heap]" || e.name == "[stack]" || e.name == "[vsyscall]") continue;
        auto found = mapping_at(getpid(), e.range.begin + (e.range.size() - 1));
        if (!found || found->range != e.range) continue;
        CAPTURE(e.name);
        CHECK(found->name == e.name);
        CHECK(found->prot == e.prot);
        CHECK(found->shared == e.shared);
        CHECK(found->offset == e.offset);
        CHECK(found->inode == e.inode);
        CHECK(found->device == e.device);
        compared++;
    }
    CHECK(compared > 5);
    auto ours = mapping_at(getpid(), Address{reinterpret_cast<uint64_t>(shown) + 4096});
    REQUIRE(ours);
    CHECK(ours->range.size() == 2 * 4096);
    CHECK(ours->name == "/memfd:mapping_at_test (deleted)");
    CHECK(ours->offset == 4096);
    CHECK(ours->shared);
    munmap(shown, 2 * 4096);
}

TEST_CASE("in a range all are found that have a part in it") {
    constexpr size_t pages = 12;
    auto* begin = static_cast<char*>(
        mmap(nullptr, pages * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (size_t i = 0; i < pages; i += 2) mprotect(begin + i * 4096, 4096, PROT_NONE);
    munmap(begin + 3 * 4096, 2 * 4096);
    const Address at{reinterpret_cast<uint64_t>(begin)};
    auto found = mappings_in(getpid(), {at + 4096 + 5, at + 6 * 4096});
    REQUIRE(found);
    REQUIRE(found->size() == 3);
    CHECK(found->at(0).range == Range{at + 4096, at + 2 * 4096});
    CHECK(found->at(1).range == Range{at + 2 * 4096, at + 3 * 4096});
    CHECK(found->at(2).range == Range{at + 5 * 4096, at + 6 * 4096});
    CHECK(mappings_in(getpid(), {at + 3 * 4096, at + 5 * 4096})->empty());
    munmap(begin, pages * 4096);
}

TEST_CASE("where nothing is mapped, nothing is found") {
    void* gone = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(gone, 4096);
    auto found = mapping_at(getpid(), Address{reinterpret_cast<uint64_t>(gone)});
    REQUIRE_FALSE(found);
    CHECK(found.error().code == ENOENT);
    CHECK_FALSE(mapping_at(0, Address{4096}));
}

}  // namespace
}  // namespace gpr
